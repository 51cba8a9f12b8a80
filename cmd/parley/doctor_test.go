package main

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agentcore/provider/providertest"
	"parley/store/storetest"
)

// write makes parley.yaml in a folder of its own.
func write(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "parley.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// setup is a configuration that works, against a fake model and a real database.
func setup(t *testing.T, model *providertest.Server, more string) (dir string, env environment) {
	t.Helper()
	env = environment{"DB": storetest.URL(t), "KEY": "sk-the-right-key", "HOME": t.TempDir()}
	return write(t, `
database: { url: "${DB}" }
data_dir: ./data
http: { listen: "127.0.0.1:0" }
model: fake/model-1
providers: { fake: { api_key: "${KEY}", base_url: "`+model.BaseURL()+`" } }
`+more), env
}

type diagnosis struct {
	OK       bool
	Findings []finding
}

// failed are the checks that failed.
func (d diagnosis) failed() []finding {
	var failed []finding
	for _, f := range d.Findings {
		if !f.OK {
			failed = append(failed, f)
		}
	}
	return failed
}

func TestDoctorFindsNothingWrong(t *testing.T) {
	srv := providertest.NewServer(t, providertest.Options{Key: "sk-the-right-key", Models: []string{"model-1"}})
	dir, env := setup(t, srv, "")
	o := parleyIn(t, dir, env, "doctor")
	o.has(t, 0, "ok    configuration", "ok    database", "ok    model          fake/model-1 answered a test turn", "ok    http")
	got := decode[diagnosis](t, parleyIn(t, dir, env, "doctor", "--json"))
	if !got.OK || len(got.failed()) != 0 {
		t.Errorf("%+v", got)
	}
	db, err := url.Parse(env["DB"])
	if err != nil {
		t.Fatal(err)
	}
	password, ok := db.User.Password()
	if ok && strings.Contains(o.stdout, password) || strings.Contains(o.stdout, env["KEY"]) {
		t.Errorf("secrets: %s", o.stdout)
	}
}

func TestDoctorNamesTheFix(t *testing.T) {
	srv := providertest.NewServer(t, providertest.Options{Key: "sk-the-right-key", Models: []string{"model-1"}})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	dead := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = dead.Serve(taken) }()
	t.Cleanup(func() { _ = dead.Close() })
	for name, test := range map[string]struct {
		change func(env environment) (more string)
		check  string
		fix    string
	}{
		"wrong key":     {func(e environment) string { e["KEY"] = "sk-another-key"; return "" }, "model", "the key is refused"},
		"no key":        {func(e environment) string { delete(e, "KEY"); return "" }, "model", "set the key"},
		"unknown model": {func(environment) string { return "fallback_providers: [ fake/model-2 ]\n" }, "model", "no such model"},
		"no database":   {func(e environment) string { e["DB"] = "postgres://127.0.0.1:1/x"; return "" }, "database", "start the server, or correct database.url"},
	} {
		dir, env := setup(t, srv, "")
		if more := test.change(env); more != "" {
			dir, _ = setup(t, srv, more)
		}
		o := parleyIn(t, dir, env, "doctor", "--json")
		if o.code != 1 {
			t.Errorf("%s: exit code %d", name, o.code)
		}
		failed := decode[diagnosis](t, o).failed()
		if len(failed) != 1 || failed[0].Check != test.check || !strings.Contains(failed[0].Fix, test.fix) {
			t.Errorf("%s: %+v", name, failed)
		} else if strings.Count(failed[0].What, "fake/model-") > 1 || strings.Contains(o.stderr, "turn failed") {
			t.Errorf("%s is said twice: %+v %s", name, failed, o.stderr)
		}
	}
	dir, env := setup(t, srv, "")
	text, err := os.ReadFile(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir = write(t, strings.Replace(string(text), "127.0.0.1:0", taken.Addr().String(), 1))
	parleyIn(t, dir, env, "doctor").has(t, 1, "FAIL  http", "set http.listen to a free address")
}

func TestDoctorWithAWrongFile(t *testing.T) {
	dir := write(t, "modle: a/b\nhttpx: {}\n")
	o := parleyIn(t, dir, nil, "doctor", "--json")
	if o.code != exitConfig {
		t.Errorf("exit code %d", o.code)
	}
	got := decode[diagnosis](t, o)
	if got.OK || len(got.Findings) != 2 || !strings.Contains(got.Findings[0].What, "parley.yaml:1: modle") {
		t.Errorf("%+v", got)
	}
}
