package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// suggest says what a wrong key was probably meant to be: the nearest key of the
// same section, else the same key in its right place.
func suggest(key, path string, fields map[string]reflect.Value) string {
	names := slices.Sorted(maps.Keys(fields))
	if near := nearest(key, names); near != "" {
		return "; did you mean " + near + "?"
	}
	for _, known := range schema(reflect.TypeFor[Config](), "") {
		if known != join(path, key) && strings.HasSuffix("."+known, "."+key) {
			return "; did you mean " + known + "?"
		}
	}
	return "; known here: " + strings.Join(names, ", ")
}

// schema lists every key that has a fixed path.
func schema(t reflect.Type, path string) []string {
	fields := map[string]reflect.Value{}
	collect(reflect.New(t).Elem(), fields)
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		keys = append(keys, join(path, name))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if ft := fields[name].Type(); ft.Kind() == reflect.Struct && ft != secretType {
			keys = append(keys, schema(ft, join(path, name))...)
		}
	}
	return keys
}

// nearest returns the one of names that is a slip away from s, or nothing.
func nearest(s string, names []string) string {
	best, least := "", max(2, len(s)/3)+1
	if len(s) > 64 {
		return ""
	}
	for _, name := range names {
		if d := distance(strings.ToLower(s), name); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of single-letter edits between a and b, a swap of two
// neighbours counted as one.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
