// Prints the character classes that Go's regexp/syntax knows by name, and Go's simple case folding, as JSON.
package main

import (
	"encoding/json"
	"os"
	"unicode"
)

func ranges(table *unicode.RangeTable) []rune {
	flat := []rune{}
	add := func(low, high, stride rune) {
		for code := low; code <= high; code += stride {
			last := code
			if stride == 1 {
				last = high
			}
			if n := len(flat); n > 0 && flat[n-1]+1 == code {
				flat[n-1] = last
			} else {
				flat = append(flat, code, last)
			}
			if stride == 1 {
				break
			}
		}
	}
	for _, r := range table.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range table.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return flat
}

func main() {
	classes := map[string][]rune{}
	for name, table := range unicode.Scripts {
		classes[name] = ranges(table)
	}
	for name, table := range unicode.Categories {
		classes[name] = ranges(table)
	}
	orbits := [][]rune{}
	for code := rune(0); code <= unicode.MaxRune; code++ {
		orbit := []rune{code}
		for next := unicode.SimpleFold(code); next > code; next = unicode.SimpleFold(next) {
			orbit = append(orbit, next)
		}
		if len(orbit) > 1 && unicode.SimpleFold(orbit[len(orbit)-1]) == code {
			orbits = append(orbits, orbit)
		}
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"version": unicode.Version, "classes": classes, "aliases": unicode.CategoryAliases, "folds": orbits,
	})
}
