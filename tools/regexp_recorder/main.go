// Records what Go's regexp says of patterns and texts: JSON lines in, the same lines with Go's answers out.
//
//	zcat tests/apiserver/go/regexp/recorded.jsonl.gz | go run tools/regexp_recorder/main.go | gzip -9n > new.jsonl.gz
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

type line struct {
	Pattern string              `json:"pattern"`
	Error   string              `json:"error,omitempty"`
	Matches map[string][]string `json:"matches"` // all matches in each text; null where there is none
}

func main() {
	lines := json.NewDecoder(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for lines.More() {
		var current line
		if err := lines.Decode(&current); err != nil {
			panic(err)
		}
		current.Error = ""
		if expression, err := regexp.Compile(current.Pattern); err != nil {
			current.Error = err.Error()
		} else {
			for text := range current.Matches {
				current.Matches[text] = expression.FindAllString(text, -1)
			}
		}
		answers.Encode(current)
	}
}
