package terminal

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The values of `tools.terminal.sandbox`.
const (
	auto         = "auto"
	onlyBwrap    = "bwrap"
	onlyLandlock = "landlock"
	off          = "off"
)

// sandbox is what commands run in. It lets them write their working folder only,
// and hides people's homes and parley's own files. The network stays open.
type sandbox struct {
	// bwrap is the path of bubblewrap, landlock the version of the kernel's interface;
	// empty and 0: not used.
	bwrap    string
	landlock int
	launcher string
	// hidden are folders and files that commands do not see; read and write are the
	// owner's exceptions.
	hidden, read, write []string
}

// newSandbox takes what the machine has, or fails where what is asked for is missing.
func newSandbox(cfg Config, launcher string, hidden []string) (sandbox, error) {
	s := sandbox{launcher: launcher, hidden: hidden, read: cfg.Read, write: cfg.Write}
	if cfg.Sandbox == off {
		return s, nil
	}
	if cfg.Sandbox != onlyLandlock {
		s.bwrap = usableBwrap()
	}
	if cfg.Sandbox != onlyBwrap && launcher != "" {
		s.landlock = landlockVersion()
	}
	switch {
	case cfg.Sandbox == onlyBwrap && s.bwrap == "":
		return s, fmt.Errorf("tools.terminal.sandbox: bubblewrap (bwrap) is not installed or may not make namespaces here")
	case cfg.Sandbox == onlyLandlock && s.landlock == 0:
		return s, fmt.Errorf("tools.terminal.sandbox: the kernel has no Landlock")
	}
	return s, nil
}

// usableBwrap finds bubblewrap if it works here: in many containers it may not make
// namespaces.
func usableBwrap() string {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return ""
	}
	options := append(capabilities(), "--ro-bind", "/", "/", "--unshare-pid", "--", "true")
	if exec.Command(path, options...).Run() != nil {
		return ""
	}
	return path
}

// String says what is in force.
func (s sandbox) String() string {
	var parts []string
	if s.bwrap != "" {
		parts = append(parts, "bubblewrap")
	}
	if s.landlock > 0 {
		parts = append(parts, fmt.Sprintf("Landlock (version %d)", s.landlock))
	}
	if len(parts) == 0 {
		return "none: commands have all the rights of parley"
	}
	return strings.Join(parts, " and ")
}

// InForce says in what commands would run with this configuration, and whether that
// is anything.
func InForce(cfg Config, launcher string) (string, bool, error) {
	s, err := newSandbox(cfg, launcher, nil)
	return s.String(), s.bwrap != "" || s.landlock > 0, err
}

// command makes the command that runs args in the sandbox, working in a folder.
func (s sandbox) command(folder string, args []string) (*exec.Cmd, error) {
	if s.landlock > 0 {
		rules, err := json.Marshal(s.rules(folder))
		if err != nil {
			return nil, err
		}
		args = append([]string{s.launcher, helperWord, "sandbox", string(rules)}, args...)
	}
	if s.bwrap != "" {
		args = slices.Concat([]string{s.bwrap}, s.binds(folder), []string{"--"}, args)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = folder
	return cmd, nil
}

// binds are bubblewrap's options: the machine read-only, what is hidden empty, the
// working folder on top. Later ones cover earlier ones. The namespace does not end with
// its command, so that what the command leaves behind is seen and ended as everywhere.
func (s sandbox) binds(folder string) []string {
	b := []string{"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"}
	var sealed []string
	for _, h := range s.hidden {
		info, err := os.Stat(h)
		switch {
		case err != nil:
		case info.IsDir():
			b = append(b, "--tmpfs", h)
			sealed = append(sealed, "--remount-ro", h)
		default:
			b = append(b, "--ro-bind", "/dev/null", h)
		}
	}
	if s.launcher != "" {
		b = append(b, "--ro-bind-try", s.launcher, s.launcher)
	}
	for _, r := range append(programFolders(s.hidden), s.read...) {
		b = append(b, "--ro-bind-try", r, r)
	}
	for _, w := range append(slices.Clone(s.write), folder) {
		b = append(b, "--bind-try", w, w)
	}
	b = append(b, sealed...) // once what is mounted inside is there
	b = append(b, capabilities()...)
	return append(b, "--chdir", folder)
}

// rules is what Landlock allows: paths to read and to run from, paths to change.
type rules struct {
	Read, Write []string
}

func (s sandbox) rules(folder string) rules {
	r := rules{Read: slices.Concat(seen("/", s.hidden), programFolders(s.hidden), s.read), Write: append(slices.Clone(s.write), folder)}
	if s.bwrap != "" {
		r.Write = append(r.Write, "/tmp") // one of its own
	}
	for _, d := range []string{"null", "zero", "full", "tty", "ptmx", "pts", "shm"} {
		r.Write = append(r.Write, "/dev/"+d)
	}
	return r
}

// seen divides a folder into what may be seen when some of it is hidden. Links are
// left out: what they lead to is seen, or not, where it is.
func seen(dir string, hidden []string) []string {
	if slices.Contains(hidden, dir) {
		return nil
	}
	if !slices.ContainsFunc(hidden, func(h string) bool { return strings.HasPrefix(h, strings.TrimSuffix(dir, "/")+"/") }) {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			out = append(out, seen(filepath.Join(dir, e.Name()), hidden)...)
		}
	}
	return out
}

// programFolders are the folders of PATH that lie in something hidden.
func programFolders(hidden []string) []string {
	return slices.DeleteFunc(searchPath(), func(d string) bool {
		return !slices.ContainsFunc(hidden, func(h string) bool { return strings.HasPrefix(d, h+"/") })
	})
}

// searchPath is the PATH of commands. A relative folder would let a file in the
// working folder stand for a program.
func searchPath() []string {
	path := os.Getenv("PATH")
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	return slices.DeleteFunc(filepath.SplitList(path), func(d string) bool { return !filepath.IsAbs(d) })
}
