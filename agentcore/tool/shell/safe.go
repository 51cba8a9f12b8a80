package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/agentcore/tool"
)

// readers are programs that only read the files in their arguments, with the
// options that make them do more. An option that is a single letter is looked for
// in groups of letters too.
var readers = set("cat head tail wc nl tac rev cut sort uniq grep egrep fgrep diff cmp comm paste column fold fmt expand unexpand join md5sum sha1sum sha256sum " +
	"sha512sum cksum base64 od hexdump strings stat du df ls tree basename dirname realpath readlink file tr jq")

// others are programs that read no files.
var others = set("pwd true false : seq expr")

// exceptions are options with which a reader writes, runs something, follows links
// out of the folder, or does not end.
var exceptions = map[string][]string{
	"tail": {"f", "F", "--follow", "--retry"},
	"sort": {"o", "--output", "T", "--temporary-directory", "--compress-program", "--files0-from"},
	"grep": {"R", "--dereference-recursive", "f", "--file"}, "egrep": {"R", "--dereference-recursive", "f", "--file"}, "fgrep": {"R", "--dereference-recursive", "f", "--file"},
	"diff": {"r", "--recursive", "--from-file", "--to-file", "X", "--exclude-from"},
	"wc":   {"--files0-from"}, "du": {"--files0-from", "X", "--exclude-from", "L", "--dereference"},
	"tree": {"o", "l", "--fromfile", "--output"}, "file": {"C", "--compile", "f", "--files-from", "m", "--magic-file", "z", "Z"},
	"md5sum": {"c", "--check"}, "sha1sum": {"c", "--check"}, "sha256sum": {"c", "--check"}, "sha512sum": {"c", "--check"}, "cksum": {"c", "--check"},
	"jq": {"f", "--from-file", "L", "--rawfile", "--slurpfile", "--argfile"}, "uniq": {}, "cat": {},
}

// onlyOne are readers whose second file is written.
var onlyOne = set("uniq")

// patternFirst are readers whose first argument is no file.
var patternFirst = set("grep egrep fgrep jq tr")

// isSafe says whether a command only reads, and only inside the working folder. It
// is a list: what is not on it, or has an argument that is not understood, is not.
func isSafe(j *judge, args []word) bool {
	name, rest := args[0].text, args[1:] // with a folder in its name it could be anything
	if slices.ContainsFunc(rest, func(w word) bool { return !w.known && name != "echo" }) {
		return false
	}
	switch {
	case wrappers[name]:
		return true // what it wraps is judged by itself
	case name == "echo" || name == "printf":
		return !has(rest, "-v") && !slices.ContainsFunc(rest, func(w word) bool { return w.glob || !w.known })
	case name == "test" || name == "[":
		return !has(rest, "-v", "-R") && j.readsAll(rest)
	case name == "cd":
		return j.readsAll(targets(rest))
	case name == "date":
		return !slices.ContainsFunc(rest, func(w word) bool {
			return !strings.HasPrefix(w.text, "+") && w.text != "-u" && w.text != "-R" && w.text != "-I"
		})
	case name == "which" || name == "type":
		return true
	case others[name]:
		return !slices.ContainsFunc(rest, func(w word) bool { return w.glob })
	case !readers[name]:
		return false
	}
	files := targets(rest)
	for _, a := range rest {
		if !strings.HasPrefix(a.text, "-") {
			continue
		}
		if excepted(name, a.text) || strings.ContainsAny(a.text, "/~") || strings.Contains(a.text, "..") {
			return false
		}
		if patternFirst[name] && (strings.HasPrefix(a.text, "-e") || strings.HasPrefix(a.text, "--regexp")) {
			return false
		}
	}
	if patternFirst[name] && len(files) > 0 {
		if files[0].glob {
			return false
		}
		files = files[1:]
	}
	if onlyOne[name] && len(files) > 1 {
		return false
	}
	return j.readsAll(files)
}

// excepted says whether an argument holds one of the options that make a reader
// more than one.
func excepted(name, option string) bool {
	long, _, _ := strings.Cut(option, "=")
	for _, e := range exceptions[name] {
		if len(e) == 1 && !strings.HasPrefix(option, "--") && strings.Contains(option, e) {
			return true
		}
		// Programs take long options shortened too.
		if len(e) > 1 && strings.HasPrefix(option, "--") && len(long) > 2 && strings.HasPrefix(e, long) {
			return true
		}
	}
	return false
}

// readsAll says whether all of these are files in the working folder.
func (j *judge) readsAll(files []word) bool {
	for _, f := range files {
		if !j.within(f) {
			return false
		}
	}
	return true
}

// reads judges a file that is read by a redirection.
func (j *judge) reads(w word) {
	j.private(w)
	if !j.within(w) {
		j.found(tool.Ordinary, "it reads outside the working folder")
	}
}

// writes judges a file that is written.
func (j *judge) writes(w word) {
	j.private(w)
	for _, p := range j.places(w.text) {
		if blockDevice.MatchString(p) || p == "/proc/sysrq-trigger" {
			j.found(tool.Forbidden, "it writes to a disk, or to the machine directly")
		}
	}
	if !j.within(w) {
		j.found(tool.Dangerous, "it writes outside the working folder")
	}
	j.found(tool.Ordinary, "it writes a file")
}

// within says whether all that a word may mean lies in the working folder, links
// followed.
func (j *judge) within(w word) bool {
	if !w.known || j.elsewhere {
		return false
	}
	root, err := filepath.EvalSymlinks(j.place.Folder)
	if err != nil {
		root = j.place.Folder
	}
	for _, p := range j.places(w.text) {
		paths := []string{p}
		if w.glob {
			found, err := filepath.Glob(p)
			if err != nil || len(found) > 1000 {
				return false
			}
			if !inside(wholeOf(p), j.place.Folder) {
				return false
			}
			paths = found
		}
		for _, q := range paths {
			if !insideReally(q, j.place.Folder, root) {
				return false
			}
		}
	}
	return true
}

// insideReally follows links as far as the path exists.
func insideReally(path, folder, root string) bool {
	if !inside(path, folder) {
		return false
	}
	for p := path; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return inside(real, root)
		}
		if _, err := os.Lstat(p); err == nil {
			return false // a link that leads nowhere yet
		}
		if p == folder || p == filepath.Dir(p) {
			return true
		}
	}
}
