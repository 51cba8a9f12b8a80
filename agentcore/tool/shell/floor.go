package shell

import (
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/agentcore/tool"
)

// vital are folders whose loss is the loss of the machine; what lies in those of
// the second list may go, they themselves may not.
var (
	vital = []string{"/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/sbin", "/usr/local",
		"/System", "/Library", "/Applications", "/var", "/var/lib", "/opt", "/srv", "/root", "/home", "/Users", "/run"}
	below = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr/bin", "/usr/lib", "/usr/sbin"}
)

var (
	destroysDisks = regexp.MustCompile(`^(mkfs(\..+)?|mke2fs|mkswap|fdisk|sfdisk|cfdisk|gdisk|sgdisk|parted|wipefs|blkdiscard|badblocks|hdparm|cryptsetup|vgremove|lvremove|pvremove|zpool|nvme)$`)
	endsMachine   = regexp.MustCompile(`^(shutdown|reboot|halt|poweroff|telinit|kexec)$`)
	blockDevice   = regexp.MustCompile(`^/dev/(sd|hd|vd|xvd|nvme|mmcblk|dm-|md|loop|disk|mapper|mem|kmem|port|rdisk)`)
	otherProcess  = regexp.MustCompile(`/proc/[^/]*/(environ|mem|maps|fd|root|cwd|task)`)
)

// floor finds what nobody can consent to.
func (j *judge) floor(name string, args []word) {
	switch {
	case destroysDisks.MatchString(name) && len(args) > 0:
		j.found(tool.Forbidden, "it changes disks and file systems")
	case endsMachine.MatchString(name),
		name == "init" && has(args, "0", "1", "6"),
		(name == "systemctl" || name == "loginctl") && has(args, "poweroff", "reboot", "halt", "kexec", "rescue", "emergency", "suspend", "hibernate"):
		j.found(tool.Forbidden, "it ends the machine")
	case name == "kill" && killsAll(args), (name == "pkill" || name == "killall" || name == "killall5") && killsParley(args):
		j.found(tool.Forbidden, "it ends every process, or parley itself")
	}
	switch name {
	case "rm", "shred", "srm", "unlink", "rmdir", "truncate":
		j.removal(name, args)
	case "chmod", "chown", "chgrp", "setfacl", "chattr":
		j.permissions(args)
	case "mv":
		for _, a := range targets(args) {
			j.destroys(a, "it moves away what must stay")
		}
	case "dd":
		j.disks(args)
	}
	for _, a := range args {
		j.private(a)
		if blockDevice.MatchString(j.clean(a)) && !readers[name] && name != "dd" && name != "ls" {
			j.found(tool.Forbidden, "it works on a disk or the machine's memory directly")
		}
	}
}

// removal judges rm and its like.
func (j *judge) removal(name string, args []word) {
	j.found(tool.Dangerous, "it deletes files")
	recursive := false
	for _, a := range args {
		if strings.HasPrefix(a.text, "--no-preserve-root") {
			j.found(tool.Forbidden, "it deletes what must stay")
		}
		recursive = recursive || !a.known || a.text == "--recursive" || strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.ContainsAny(a.text, "rR")
	}
	if name == "rm" && !recursive {
		return
	}
	for _, a := range targets(args) {
		if !a.known {
			j.found(tool.Opaque, "what it deletes is computed")
			continue
		}
		j.destroys(a, "it deletes what must stay")
	}
	if len(targets(args)) == 0 {
		j.found(tool.Opaque, "what it deletes is computed") // xargs rm -r
	}
}

// permissions judges chmod and its like.
func (j *judge) permissions(args []word) {
	j.found(tool.Dangerous, "it changes who may use files")
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "--") && a.text != "--recursive" || !strings.ContainsAny(a.text, "rR") {
			continue
		}
		for _, t := range targets(args) {
			j.destroys(t, "it changes the rights of what must stay")
		}
		return
	}
}

// disks judges dd.
func (j *judge) disks(args []word) {
	for _, a := range args {
		to, ok := strings.CutPrefix(a.text, "of=")
		if !ok && a.known {
			continue
		}
		w := word{text: to, known: a.known, glob: a.glob}
		switch {
		case !w.known:
			j.found(tool.Opaque, "where it writes is computed")
		case strings.HasPrefix(j.clean(w), "/dev/") && !slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, j.clean(w)):
			j.found(tool.Forbidden, "it writes to a device")
		default:
			j.writes(w)
		}
	}
}

// destroys forbids an operation on what must stay: the root, the system, homes, and
// everything in them by a wildcard.
func (j *judge) destroys(w word, reason string) {
	if !w.known {
		j.found(tool.Opaque, "what it works on is computed")
		return
	}
	if j.elsewhere && !filepath.IsAbs(w.text) {
		j.found(tool.Opaque, "the folder in which it works is computed")
	}
	for _, p := range j.places(w.text) {
		whole := p
		if w.glob {
			if whole = wholeOf(p); whole == j.place.Folder {
				continue // everything in the working folder may go
			}
		}
		switch {
		case slices.Contains(vital, whole), slices.Contains(j.place.Homes, whole), whole == j.place.Folder,
			filepath.Dir(whole) == "/home", filepath.Dir(whole) == "/Users",
			slices.ContainsFunc(below, func(dir string) bool { return inside(whole, dir) }),
			slices.ContainsFunc(append(slices.Clone(j.place.Private), j.place.Homes...), func(dir string) bool { return inside(dir, whole) }):
			j.found(tool.Forbidden, reason)
		}
	}
}

// wholeOf is the folder whose whole content a path with a wildcard may mean, or the
// path up to its first wildcard.
func wholeOf(path string) string {
	for i, c := range path {
		if strings.ContainsRune("*?[", c) {
			return filepath.Dir(path[:i] + "x")
		}
	}
	return path
}

// private forbids what names parley's own files, or another process's memory and
// environment.
func (j *judge) private(w word) {
	if w.text == "" {
		return
	}
	text := w.text
	if _, value, ok := strings.Cut(text, "="); ok {
		text = value // --file=PATH, if=PATH
	}
	for _, p := range append(j.places(text), j.places(strings.TrimPrefix(w.text, "@"))...) {
		j.privatePath(p, w.glob)
		if real, err := filepath.EvalSymlinks(p); err == nil && real != p {
			j.privatePath(real, w.glob)
		}
	}
	if m := otherProcess.FindString(w.text); m != "" && !strings.HasPrefix(m, "/proc/self/") && !strings.HasPrefix(m, "/proc/thread-self/") {
		j.found(tool.Forbidden, "it looks into other processes")
	}
}

func (j *judge) privatePath(p string, glob bool) {
	if inside(p, j.place.Folder) {
		return
	}
	for _, secret := range j.place.Private {
		if inside(p, secret) || glob && inside(secret, wholeOf(p)) && matches(p, secret) {
			j.found(tool.Forbidden, "it touches parley's own files")
		}
	}
}

// matches says whether a path with wildcards may mean a file or a folder above it.
func matches(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i := range min(len(want), len(have)) {
		if ok, err := filepath.Match(want[i], have[i]); err == nil && !ok {
			return false
		}
	}
	return true
}

// address forbids what names a cloud's metadata service, in any notation.
func (j *judge) address(text string) {
	lower := strings.ToLower(text)
	if strings.Contains(lower, "metadata.google.internal") || strings.Contains(lower, "fd00:ec2::254") {
		j.found(tool.Forbidden, "it asks the cloud for the machine's credentials")
	}
	for _, host := range strings.FieldsFunc(lower, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefx.", r) }) {
		if a, ok := ipv4(host); ok && (netip.MustParsePrefix("169.254.0.0/16").Contains(a) || a == netip.AddrFrom4([4]byte{100, 100, 100, 200})) {
			j.found(tool.Forbidden, "it asks the cloud for the machine's credentials")
		}
	}
}

// ipv4 reads an address the way inet_aton does: one to four parts, each decimal,
// octal or hexadecimal.
func ipv4(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 || len(parts) == 1 && len(s) < 8 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 0, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			value = value<<(8*(5-len(parts))) | n
			break
		}
		value = value<<8 | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// clean is a word's path; "" if it is not known.
func (j *judge) clean(w word) string {
	if !w.known {
		return ""
	}
	return resolve(j.place.Folder, w.text)
}

func has(args []word, texts ...string) bool {
	return slices.ContainsFunc(args, func(w word) bool { return slices.Contains(texts, w.text) })
}

// targets are the arguments that are no options.
func targets(args []word) []word {
	var out []word
	options := true
	for _, a := range args {
		switch {
		case options && a.known && a.text == "--":
			options = false
		case options && a.known && strings.HasPrefix(a.text, "-"):
		default:
			out = append(out, a)
		}
	}
	return out
}

// killsAll finds kill with -1, or with a process that is computed, among which
// parley's own could be.
func killsAll(args []word) bool {
	for i, a := range args {
		if a.text == "-1" && i > 0 || a.text == "1" || a.text == "-1" && len(args) == 1 {
			return true
		}
	}
	return false
}

func killsParley(args []word) bool {
	return len(args) == 0 || has(args, "-1") || slices.ContainsFunc(args, func(w word) bool { return strings.Contains(w.text, "parley") })
}
