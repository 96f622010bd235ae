// Package spelling finds the name that somebody meant who wrote another. It is pure, so that workflows may use it.
package spelling

import "strings"

// Nearest gives the name that text most likely stands for, whatever its case: one that a few typing mistakes make of it, else
// one that contains it. "" where none is near.
func Nearest(text string, names []string) string {
	best, least := "", max(2, len(text)/3)+1
	for _, name := range names {
		if d := distance(strings.ToLower(text), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(text) < 3 {
		return best
	}
	for _, name := range names {
		if strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
			return name
		}
	}
	return ""
}

// distance is the least number of letters to add, drop, change or swap with their neighbour that makes a into b.
func distance(a, b string) int {
	const long = 64 // letters; beyond it names are not typing mistakes of each other
	x, y := []rune(a), []rune(b)
	if len(x) > long || len(y) > long {
		return long
	}
	var before []int
	last := make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row := make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
