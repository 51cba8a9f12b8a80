package terminal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/agentcore/tool"
)

// secluded is a rig whose parley has files of its own beside the workspace.
func secluded(t *testing.T, cfg Config) (rig, string) {
	t.Helper()
	r := newRig(t)
	root := filepath.Dir(r.dir)
	secret := filepath.Join(t.TempDir(), "parley.yaml")
	for path, text := range map[string]string{secret: "token: sesame", filepath.Join(root, "beside"): "sesame"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	space, err := tool.NewWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	term, err := New(cfg, Deps{Workspace: space, Launcher: self, Private: []string{secret, root}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.Close)
	r.term, r.tool = term, term.Tools()[0]
	return r, secret
}

// What a command may see and change is bounded by the kernel, however it is written:
// parley's files, the other conversations, people's homes, other processes. This
// machine has Landlock, without which the tools are held by the judgement alone.
func TestSandbox(t *testing.T) { inEach(t, bounds) }

func bounds(t *testing.T, kind string) {
	r, secret := secluded(t, Config{Sandbox: kind})
	self := strconv.Itoa(os.Getpid())
	other := filepath.Join(filepath.Dir(r.dir), "c2")
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "note"), []byte("sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"cat " + secret, "cat ../beside", "cat ../c2/note", "ls ../c2", "ln -s " + secret + " l; cat l", "echo x > ../c2/new",
		"python3 -c 'print(open(\"" + secret + "\").read())' || exit 1", "cat /proc/" + self + "/environ", "kill -0 " + self, "touch ~root/x", "cat ~root/.bashrc ~root/.profile", "rm ../beside", "mv ../beside here",
	} {
		got := r.run(t.Context(), input{Command: command}, nil)
		if !got.Failed || strings.Contains(got.Text, "sesame") {
			t.Errorf("%s: %+v", command, got)
		}
	}
	for _, command := range []string{
		"echo x > a && mkdir d && mv a d/b && cat d/b && rm -r d", "ls /usr/bin > /dev/null", "cat /etc/hostname /proc/cpuinfo > /dev/null", "mktemp", "cat <(echo x)", "cat <<< x",
		"(sleep 1000 & kill $!)", "cd /; true",
	} {
		if got := r.run(t.Context(), input{Command: command}, nil); got.Failed {
			t.Errorf("%s: %+v", command, got)
		}
	}
	// bubblewrap gives commands a /tmp of their own, Landlock none.
	outside := filepath.Join(os.TempDir(), "parley-sandbox-test")
	r.run(t.Context(), input{Command: "echo x > " + outside}, nil)
	if _, err := os.Stat(outside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a command has written outside of its folder: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(r.dir), "beside")); err != nil || string(b) != "sesame" {
		t.Errorf("%q, %v", b, err)
	}
}

// Root's commands cannot take the sandbox apart: what is read-only stays so and what
// covers the hidden stays on it.
func TestSandboxStaysMounted(t *testing.T) { inEach(t, staysMounted) }

func staysMounted(t *testing.T, kind string) {
	r, _ := secluded(t, Config{Sandbox: kind})
	for _, command := range []string{
		"mount -o remount,rw,bind /", "umount -l /tmp", "mkdir -p m; mount -t proc proc m", "unshare -m true",
		"unshare -r -m mount -o remount,rw,bind /",
	} {
		if got := r.run(t.Context(), input{Command: command}, nil); !got.Failed {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := r.run(t.Context(), input{Command: "touch f && chown 1 f && chgrp 1 f"}, nil); os.Geteuid() == 0 && got.Failed {
		t.Errorf("what package managers need is gone: %+v", got)
	}
}

func TestSandboxExceptions(t *testing.T) { inEach(t, exceptions) }

func exceptions(t *testing.T, kind string) {
	shared, given := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "f"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := secluded(t, Config{Sandbox: kind, Read: []string{shared}, Write: []string{given}})
	if got := r.run(t.Context(), input{Command: "cp " + shared + "/f " + given}, nil); got.Failed {
		t.Errorf("%+v", got)
	}
	if got := r.run(t.Context(), input{Command: "touch " + shared + "/g"}, nil); !got.Failed {
		t.Errorf("%+v", got)
	}
}

// Nothing runs without the sandbox that is asked for.
func TestSandboxFailsClosed(t *testing.T) {
	if code, ran := Helper([]string{helperWord, "sandbox", "{", "touch", filepath.Join(t.TempDir(), "x")}); !ran || code != 126 {
		t.Errorf("%d, %v", code, ran)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := newSandbox(Config{Sandbox: onlyBwrap}, "", nil); err == nil {
		t.Error("bubblewrap is not there and nothing is said")
	}
	if _, err := newSandbox(Config{Sandbox: onlyLandlock}, "", nil); err == nil {
		t.Error("there is no launcher and nothing is said")
	}
	if s, err := newSandbox(Config{Sandbox: off}, "/x", nil); err != nil || !strings.Contains(s.String(), "all the rights") {
		t.Errorf("%s, %v", s, err)
	}
	for _, c := range []Config{{Sandbox: "on"}, {Sandbox: auto, Read: []string{"x"}}, {Sandbox: auto, Write: []string{"/"}}} {
		if len(c.Validate()) != 1 {
			t.Errorf("%+v: %v", c, c.Validate())
		}
	}
}

// Bubblewrap's options: later ones cover earlier ones, so the order is the policy.
func TestBinds(t *testing.T) {
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := sandbox{bwrap: "/bin/bwrap", launcher: "/bin/parley", hidden: []string{home, file, "/missing"}, read: []string{"/r"}, write: []string{"/w"}}
	cmd, err := s.command("/work/c1", []string{"bash", "-c", "ls"})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(cmd.Args, " ")
	at := 0
	for _, part := range []string{
		"/bin/bwrap --unshare-pid", "--unshare-uts --ro-bind / /", "--tmpfs /tmp", "--tmpfs " + home, "--ro-bind /dev/null " + file, "--ro-bind-try /bin/parley /bin/parley",
		"--ro-bind-try /r /r", "--bind-try /w /w", "--bind-try /work/c1 /work/c1", "--remount-ro " + home, "--chdir /work/c1 -- bash -c ls",
	} {
		i := strings.Index(all[at:], part)
		if i < 0 {
			t.Fatalf("%q is not where it should be in %s", part, all)
		}
		at += i
	}
	if strings.Contains(all, "/missing") {
		t.Error(all)
	}
}

func TestSeen(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"a/x", "a/y", "b", "secret"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, "secret"), filepath.Join(root, "a", "link")); err != nil {
		t.Fatal(err)
	}
	got := seen(root, []string{filepath.Join(root, "secret"), filepath.Join(root, "a", "y")})
	if want := []string{filepath.Join(root, "a", "x"), filepath.Join(root, "b")}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
