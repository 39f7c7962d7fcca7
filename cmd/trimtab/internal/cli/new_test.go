package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
)

// TestNewRefuses: a project that cannot be made is refused in one sentence that says what to do, and nothing is written.
func TestNewRefuses(t *testing.T) {
	tests := map[string]struct{ why, args, want string }{
		"no name":        {"the folder needs one", "--kind Widget --loop", "0 names are given; name the operator and its folder, as in trimtab new widgets --kind Widget --external"},
		"two names":      {"one of them is a mistake", "a b --kind Widget --loop", "2 names are given; name the operator and its folder, as in trimtab new widgets --kind Widget --external"},
		"a bad name":     {"a Deployment could not have it", "Widgets_1 --kind Widget --loop", `"Widgets_1" cannot name an operator; use lower-case letters, digits and hyphens, such as widgets`},
		"a path":         {"it is a name, too", "../widgets --kind Widget --loop", `"../widgets" cannot name an operator; use lower-case letters, digits and hyphens, such as widgets`},
		"taken":          {"nobody's work is overwritten", "taken --kind Widget --loop", "the folder taken is not empty; choose another name, or remove the folder"},
		"a file":         {"nor this one", "file --kind Widget --loop", "file exists and is no folder that can be read; choose another name, or remove it"},
		"no kind":        {"it cannot be guessed", "widgets --loop", "the kind is missing; name it in the singular, as in --kind Widget"},
		"a lower-case":   {"it would not be exported", "widgets --kind widget --loop", `--kind "widget" is no name of a kind; use letters and digits and begin with a capital, as in --kind Widget`},
		"a hyphen":       {"it would be no type", "widgets --kind My-Widget --loop", `--kind "My-Widget" is no name of a kind; use letters and digits and begin with a capital, as in --kind Widget`},
		"a list":         {"lists of Widgets have this name", "widgets --kind WidgetList --loop", "--kind WidgetList ends in List, as the lists of kinds do; choose another name"},
		"a function":     {"the package would have it twice", "widgets --kind AddToScheme --loop", "--kind AddToScheme is the name of a function; choose another name"},
		"a word":         {"the API server takes none", "widgets --kind Widget --loop --group widgets", `--group "widgets" is no domain; use one of yours, in lower case, such as widgets.example.com`},
		"a capital":      {"nor this", "widgets --kind Widget --loop --group Example.com", `--group "Example.com" is no domain; use one of yours, in lower case, such as widgets.example.com`},
		"of Kubernetes":  {"the API server wants an approval", "widgets --kind Widget --loop --group apps.k8s.io", "--group apps.k8s.io is kept for Kubernetes itself; use a domain of yours, such as widgets.example.com"},
		"a bad module":   {"the go command would say it worse", "widgets --kind Widget --loop --module https://x", `--module "https://x" is no path of a module; use the address of its repository, such as github.com/your-name/widgets`},
		"no form":        {"there is no usual one", "widgets --kind Widget", errForm.Error()},
		"two forms":      {"there would be two main functions", "widgets --kind Widget --loop --external", errForm.Error()},
		"a chart alone":  {"nothing else renders it", "widgets --kind Widget --external --chart chart", "--chart is for components; use it with --component"},
		"no chart":       {"the folder is misspelt", "widgets --kind Widget --component --chart taken", "--chart taken is no Helm chart: it has no file Chart.yaml; name the folder of a chart"},
		"no checkout":    {"the folder is misspelt", "widgets --kind Widget --loop --replace taken", "taken is no checkout of trimtab; name the folder that has the go.mod of github.com/trimtab-dev/trimtab"},
		"an unknown way": {"cobra says so", "widgets --kind Widget --extern", "unknown flag: --extern"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.Mkdir("taken", 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"file", filepath.Join("taken", "main.go")} {
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, out, errOut := runCLI(t.Context(), append([]string{"new"}, strings.Fields(tt.args)...)...)
			if code != 1 || out != "" || !strings.HasPrefix(errOut, "trimtab: ") || !strings.HasSuffix(errOut, tt.want+"\n") || strings.Count(errOut, "\n") != 1 {
				t.Errorf("%s: exit code %d, %q on standard output, and this on standard error, want %q:\n%s", tt.why, code, out, tt.want, errOut)
			}
			if left, _ := filepath.Glob("*"); strings.Join(left, " ") != "file taken" {
				t.Errorf("%s: left behind: %q", tt.why, left)
			}
		})
	}
}

// TestNewSaysAll: who made several mistakes hears of them at once.
func TestNewSaysAll(t *testing.T) {
	t.Chdir(t.TempDir())
	_, _, errOut := runCLI(t.Context(), "new", "Widgets", "--kind", "widget", "--group", "x", "--loop")
	if got := strings.Count(errOut, "\n"); got != 3 {
		t.Errorf("%d lines, want one for the name, the kind and the group:\n%s", got, errOut)
	}
}

// TestNewInterrupted: Ctrl-C leaves nothing behind.
func TestNewInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	code, _, errOut := runCLI(ctx, "new", "widgets", "--kind", "Widget", "--external")
	if code != 1 || !strings.HasSuffix(errOut, "trimtab: interrupted; nothing is left behind\n") {
		t.Errorf("exit code %d, want 1 and that it was interrupted:\n%s", code, errOut)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestNewFails: a chart that cannot be rendered leaves nothing behind.
func TestNewFails(t *testing.T) {
	gobuild.Builds(t, "../../../..", "./component/...", "./generator/helm") // what renders the chart
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join("chart", "templates"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "templates/a.yaml": "{{ fail \"no shop today\" }}\n",
	} {
		if err := os.WriteFile(filepath.Join("chart", filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("shops", 0o700); err != nil { // an empty folder may be there
		t.Fatal(err)
	}
	code, _, errOut := runCLI(t.Context(), "new", "shops", "--kind", "Shop", "--component", "--chart", "chart")
	const why = "trimtab: the chart cannot be rendered with its own values: chart shop: shop/templates/a.yaml:1:3: no shop today\n"
	if code != 1 || !strings.HasSuffix(errOut, why) {
		t.Errorf("exit code %d, want 1 and %q:\n%s", code, why, errOut)
	}
	left, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0].Name() != "chart" || left[1].Name() != "shops" {
		t.Errorf("left behind: %v", left)
	}
	if inside, err := os.ReadDir("shops"); err != nil || len(inside) > 0 {
		t.Errorf("in the folder: %v, %v", inside, err)
	}
}

// TestNewInWorkspace: a go.work file above does not get in the way, and it is said that it does not know the module.
func TestNewInWorkspace(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOWORK", "")
	t.Setenv("GOFLAGS", "-mod=readonly")
	if err := os.WriteFile("go.work", []byte("go 1.26.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := runCLI(t.Context(), "new", "messages", "--kind", "Message", "--loop")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errOut)
	}
	work, err := filepath.Abs("go.work")
	if err != nil {
		t.Fatal(err)
	}
	if want := "  go work use messages   # " + work + " does not know the module\n"; !strings.Contains(out, want) {
		t.Errorf("it says %q, want %q", out, want)
	}
	if text, err := os.ReadFile("go.work"); err != nil || string(text) != "go 1.26.0\n" {
		t.Errorf("go.work is %q, %v", text, err)
	}
}

// TestGen: what is stale is named and written, and what is not is left alone.
func TestGen(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, errOut := runCLI(t.Context(), "gen"); code != 1 || !strings.Contains(errOut, "no go.mod at or above") {
		t.Errorf("without a module: exit code %d\n%s", code, errOut)
	}
	if code, _, errOut := runCLI(t.Context(), "new", "messages", "--kind", "Message", "--loop", "--group", "chat.example.org"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errOut)
	}
	kind := filepath.Join("api", "v1alpha1", "message.go")
	t.Chdir("messages")
	gobuild.Builds(t, "", "./...")
	text, err := os.ReadFile(kind)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "	Message string `json:\"message\"`", "	Message string `json:\"message\"`\n	To []string `json:\"to,omitempty\"`", 1)
	if err := os.WriteFile(kind, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	const crd, copies = "crds/chat.example.org_messages.yaml", "api/v1alpha1/zz_generated.deepcopy.go"
	code, _, errOut := runCLI(t.Context(), "gen", "--check")
	if want := "trimtab: " + copies + " is not current\n" + crd + " is not current\nrun trimtab gen and commit what it changes\n"; code != 1 || errOut != want {
		t.Errorf("gen --check: exit code %d, want 1 and %q:\n%s", code, want, errOut)
	}
	t.Chdir("api") // below the module
	if code, out, errOut := runCLI(t.Context(), "gen"); code != 0 || out != copies+"\n"+crd+"\n" {
		t.Errorf("gen: exit code %d, it printed %q\n%s", code, out, errOut)
	}
	if code, out, errOut := runCLI(t.Context(), "gen", "--check"); code != 0 || out != "" {
		t.Errorf("after gen: exit code %d, it printed %q\n%s", code, out, errOut)
	}
}
