package operator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace/tracetest"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	t.Setenv("PROBE_PASSWORD", "hunter2")
	cases := map[string]struct{ why, where, want, trouble string }{
		"not set":            {why: "there is none, which is no mistake"},
		"file":               {why: "as Kubernetes mounts it", where: file("plain", "hunter2"), want: "hunter2"},
		"file with line end": {why: "as editors write it", where: file("line", "hunter2\r\n"), want: "hunter2"},
		"file with blanks":   {why: "they belong to it", where: file("blanks", " a b \n\n"), want: " a b \n"},
		"empty file":         {why: "nobody means it", where: file("empty", "\n"), trouble: "is empty"},
		"no file":            {why: "it may come yet", where: "file:" + filepath.Join(dir, "none"), trouble: "no such file"},
		"environment":        {why: "as Deployments give it", where: "env:PROBE_PASSWORD", want: "hunter2"},
		"no environment":     {why: "a slip of the pen", where: "env:PROBE_PASWORD", trouble: "PROBE_PASWORD is not set"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var s operator.Secret
			if err := s.Set(tc.where); err != nil {
				t.Fatal(err)
			}
			got, err := s.Read()
			if got != tc.want || (err != nil) != (tc.trouble != "") {
				t.Errorf("%s: %q, %v; want %q", tc.why, got, err, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.trouble) {
				t.Errorf("%s: %v; want %q", tc.why, err, tc.trouble)
			}
			if s.String() != tc.where || s.IsZero() != (tc.where == "") {
				t.Errorf("%s: shown as %q", tc.why, s.String())
			}
		})
	}
}

func TestASecretIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	var s operator.Secret
	if err := s.Set("file:" + path); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"old", "new"} {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Read(); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// guarded is an operator with every kind of flag.
func guarded() operator.Options {
	o := probeOperator()
	o.CRDs = nil
	own := o.Flags
	o.Flags = func(f *pflag.FlagSet) {
		own(f)
		f.Var(new(operator.Secret), "password", "password of the operator's user")
		f.Var(new(operator.Secret), "token", "token of the operator's user")
		f.Var(new(operator.File), "key", "file with the operator's key")
	}
	return o
}

func TestManifestsTakeSecrets(t *testing.T) {
	got := runArgs(t, guarded(), "manifests", "--namespace", "ops", "--from-secret", "password=vendor.login/password",
		"--from-secret", "key=tls/tls.key", "--from-secret", "token=tls/token", "--", "--greeting=ahoy")
	if got.Code != 0 {
		t.Fatal(got.ErrOut)
	}
	_, deployment, _ := strings.Cut(got.Out, "kind: Deployment\n")
	tracetest.Compare(t, "testdata/manifests-with-secrets.yaml", deployment, *update)

	// A real API server finds nothing wrong with it, and nothing that it would drop.
	objects, err := operator.Manifests(guarded(), operator.ManifestOptions{FromSecret: map[string]string{
		"password": "vendor.login/password", "key": "tls/tls.key", "token": "tls/token",
	}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := testenv.Start(t)
	d := find[*appsv1.Deployment](t, objects)
	d.Namespace = testenv.Namespace(t, cfg)
	c := testenv.Client(t, cfg)
	if err := c.Create(t.Context(), d, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Error(err)
	}
	// What it runs with are flags that the operator takes.
	f := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	guarded().Flags(f)
	args := d.Spec.Template.Spec.Containers[0].Args
	if err := f.Parse(args[1:]); err != nil {
		t.Error(err)
	}
	want := []string{
		"manager", "--key=/etc/probe-operator/tls/tls.key",
		"--password=file:/etc/probe-operator/vendor.login/password", "--token=file:/etc/probe-operator/tls/token",
	}
	if diff := cmp.Diff(want, args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

// The author's own checks of flags see those from Secrets, too.
func TestControllersSeeFlagsFromSecrets(t *testing.T) {
	o := probeOperator()
	var password operator.Secret
	o.Flags = func(f *pflag.FlagSet) { f.Var(&password, "password", "") }
	own := o.Controllers
	var seen string
	o.Controllers = func() ([]operator.Controller, error) {
		seen = password.String()
		return own()
	}
	if _, err := operator.Manifests(o, operator.ManifestOptions{FromSecret: map[string]string{"password": "a/b"}}); err != nil {
		t.Fatal(err)
	}
	if want := "file:/etc/probe-operator/a/b"; seen != want {
		t.Errorf("the controllers were made with --password=%q, want %q", seen, want)
	}
}

func TestSecretsThatCannotBe(t *testing.T) {
	cases := map[string]struct {
		why     string
		options operator.Options
		args    []string
		want    string
	}{
		"a secret among the arguments": {
			why: "it would be in manifests, and in the list of processes", options: guarded(), args: []string{"--password=hunter2"},
			want: "do not put a secret into arguments; use file:PATH or env:NAME",
		},
		"a secret among a Deployment's arguments": {
			why: "it would be in the manifests", options: guarded(), args: []string{"manifests", "--", "--password=hunter2"},
			want: "flags of the manager: --password: do not put a secret into arguments",
		},
		"a flag that is not there": {
			why: "a typo", options: guarded(), args: []string{"manifests", "--from-secret", "pasword=a/b"},
			want: "--pasword cannot be taken from a Secret; these flags can: --key, --password, --token",
		},
		"a flag of another type": {
			why: "it would get the name of a file", options: guarded(), args: []string{"manifests", "--from-secret", "greeting=a/b"},
			want: "--greeting cannot be taken from a Secret",
		},
		"no flag for it": {
			why: "the author declared none", options: probeOperator(), args: []string{"manifests", "--from-secret", "greeting=a/b"},
			want: "these flags can: none of this operator",
		},
		"twice": {
			why: "which one?", options: guarded(), args: []string{"manifests", "--from-secret", "key=a/b", "--", "--key=/x"},
			want: "--key is also given after --; remove one of the two",
		},
		"no key": {
			why: "a Secret has several", options: guarded(), args: []string{"manifests", "--from-secret", "key=a"},
			want: "name a Secret and a key in it: FLAG=SECRET/KEY",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := runArgs(t, tc.options, tc.args...)
			if got.Code != 1 || got.Out != "" || !strings.Contains(got.ErrOut, tc.want) {
				t.Errorf("%s: exit code %d, output %q, error %q; want %q", tc.why, got.Code, got.Out, got.ErrOut, tc.want)
			}
			if strings.Contains(got.ErrOut, "hunter2") {
				t.Errorf("the complaint repeats the secret: %s", got.ErrOut)
			}
		})
	}
}
