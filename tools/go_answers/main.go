// What Go's standard library answers, for the tests of konverge.apiserver.go.
//
//	cp tests/apiserver/go/recorded/go.jsonl questions && go run ./tools/go_answers < questions > tests/apiserver/go/recorded/go.jsonl
//
// A line is {"function": …, "input": …}; the answer adds "value" or "error". Inputs are texts; those of JSON have one
// character for each byte, so that they need not be UTF-8.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"
)

type line struct {
	Function string `json:"function"`
	Input    string `json:"input"`
	Value    string `json:"value,omitempty"`
	Error    string `json:"error,omitempty"`
}

func answer(function, input string) (string, error) {
	switch function {
	case "json.Unmarshal":
		bytes := make([]byte, 0, len(input))
		for _, character := range input {
			bytes = append(bytes, byte(character))
		}
		var value any
		return "", json.Unmarshal(bytes, &value)
	case "json.Marshal":
		text, err := json.Marshal(input)
		return string(text), err
	case "json.Marshal float":
		number, err := strconv.ParseFloat(input, 64)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(number)
		return string(text), err
	case "fmt %v float":
		number, err := strconv.ParseFloat(input, 64)
		return fmt.Sprintf("%v", number), err
	case "strconv.Quote":
		return strconv.Quote(input), nil
	case "strconv.ParseInt":
		number, err := strconv.ParseInt(input, 10, 64)
		return fmt.Sprint(number), err
	case "strconv.ParseUint":
		number, err := strconv.ParseUint(input, 10, 64)
		return fmt.Sprint(number), err
	case "time.ParseDuration":
		duration, err := time.ParseDuration(input)
		return fmt.Sprint(duration.Nanoseconds()), err
	case "time.Parse":
		moment, err := time.Parse(time.RFC3339, input)
		return moment.UTC().Format(time.RFC3339), err
	case "base64.DecodeString":
		data, err := base64.StdEncoding.DecodeString(input)
		return base64.StdEncoding.EncodeToString(data), err
	case "netip.ParseAddr":
		address, err := netip.ParseAddr(input)
		return address.String(), err
	case "netip.ParsePrefix":
		prefix, err := netip.ParsePrefix(input)
		return prefix.String(), err
	case "url.ParseRequestURI":
		parsed, err := url.ParseRequestURI(input)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s|%s|%s", parsed.Scheme, parsed.Host, parsed.EscapedPath()), nil
	case "url.Parse":
		parsed, err := url.Parse(input)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s|%s|%s|%v|%s|%s", parsed.Scheme, parsed.Host, parsed.Path, parsed.User != nil, parsed.RawQuery, parsed.Fragment), nil
	}
	return "", fmt.Errorf("unknown function %s", function)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		var question line
		if err := json.Unmarshal(lines.Bytes(), &question); err != nil {
			panic(err)
		}
		value, err := answer(question.Function, question.Input)
		if err != nil {
			question.Value, question.Error = "", err.Error()
		} else {
			question.Value, question.Error = value, ""
		}
		if err := encoder.Encode(question); err != nil {
			panic(err)
		}
	}
}
