package templates_test

import (
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
	"github.com/trimtab-dev/trimtab/generator/templates"
)

// folder returns a file system with these files in the folder "f": names and contents in turn.
func folder(files ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		out["f/"+files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return out
}

// object is a ConfigMap with a value.
func object(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  value: " + value + "\n"
}

func render(t *testing.T, files fstest.MapFS, o templates.Options, data any) (component.Set, error) {
	t.Helper()
	g, err := templates.NewGenerator(files, "f", o)
	if err != nil {
		return component.Set{}, err
	}
	return g.Render(t.Context(), templates.Request{Namespace: "ns", Name: "n", Data: data})
}

// value renders a ConfigMap and returns its value.
func value(t *testing.T, files fstest.MapFS, o templates.Options, data any) any {
	t.Helper()
	set, err := render(t, files, o, data)
	if err != nil {
		t.Fatal(err)
	}
	objects := set.Objects()
	if len(objects) != 1 {
		t.Fatalf("%d objects, want 1", len(objects))
	}
	u, _ := objects[0].(*unstructured.Unstructured)
	data, _ = u.Object["data"].(map[string]any)["value"]
	return data
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`{{ .text | upper | quote }}`:    "X",
		`{{ .number }}`:                  int64(3000000),
		`{{ add .number 1 }}`:            int64(3000001),
		`{{ include "greeting" "Ada" }}`: "Hello Ada",
		`{{ tpl "{{ .text }} {{ include \"greeting\" .text }}" . }}`:                     "x Hello x",
		`{{ tpl "{{ define \"greeting\" }}Bye{{ end }}{{ template \"greeting\" }}" . }}`: "Bye",
		`{{ required "no text" .text }}`:                                                 "x",
		`{{ .missing | default "d" }}`:                                                   "d",
		`{{ toYaml .list | b64enc }}`:                                                    "LSBhCi0gYg==",
		`{{ (fromYaml "a: {b: c}").a.b }}`:                                               "c",
		`{{ index (fromYamlArray "[a, b]") 1 }}`:                                         "b",
		`{{ index (fromJsonArray "[1, 2]") 1 | quote }}`:                                 "2",
		`{{ (fromJson "{\"a\": \"b\"}").a }}`:                                            "b",
		`{{ keys .map | join "," }}`:                                                     "a,b,c",
		`{{ values .map | join "," | quote }}`:                                           "1,2,3",
		`{{ namespace }}/{{ name }}`:                                                     "ns/n",
		`{{ componentRevision }}`:                                                        int64(1),
		`{{ componentDigest | quote }}`:                                                  "",
		`{{ lookup "v1" "Secret" "ns" "a" | len }}`:                                      int64(0),
		`{{ lookupList "v1" "Secret" "ns" "a=b" | len }}`:                                int64(0),
		`{{ readFile "notes/n.txt" | quote }}`:                                           "{{ note }}",
		`{{ existsFile "notes/n.txt" }}{{ existsFile "notes/m.txt" }}`:                   "truefalse",
		`{{ listFiles "no*/**.{txt,md}" | join "," }}`:                                   "notes/n.txt",
		`{{ index (fromYaml "[3000000]") 0 }}`:                                           int64(3000000),
		`{{ .pointer | quote }}`:                                                         "p",
		`{{ cat .pointer .pointer }}{{ toString .pointer }}`:                             "p pp",
		`{{ .nil | quote }}`:                                                             nil,
		`{{ own 2 }}`:                                                                    int64(4),
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got := value(t, folder("a.yaml", object(text), "_h.tpl", `{{ define "greeting" }}Hello {{ . }}{{ end }}`, "notes/n.txt", "{{ note }}"),
				templates.Options{Functions: template.FuncMap{"own": func(n int) int { return 2 * n }}},
				map[string]any{"pointer": new("p"), "nil": (*string)(nil), "text": "x", "number": int64(3000000), "list": []any{"a", "b"}, "map": map[string]any{"c": 3, "a": 1, "b": 2}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAbsent: what is another thing each time, or is read from the machine, cannot be called.
func TestAbsent(t *testing.T) {
	t.Parallel()
	for _, call := range []string{
		`env "HOME"`, `expandenv "$HOME"`, `getHostByName "localhost"`, `now`, `date "2006" 0`, `ago 0`, `toDate "2006" "1"`,
		`randAlphaNum 5`, `randAlpha 5`, `randNumeric 5`, `randAscii 5`, `randInt 1 5`, `randBytes 5`, `uuidv4`, `shuffle "abc"`,
		`genPrivateKey "rsa"`, `genCA "a" 1`, `genSelfSignedCert "a" nil nil 1`, `bcrypt "a"`, `htpasswd "a" "b"`, `encryptAES "a" "b"`,
		`osBase "a"`,
	} {
		_, err := render(t, folder("a.yaml", object("{{ "+call+" }}")), templates.Options{}, nil)
		name, _, _ := strings.Cut(call, " ")
		want := `templates f: a.yaml:5: function "` + name + `" not defined: this function of sprig is left out; see the documentation of the package`
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", call, err, want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	type typed struct{ Known int }
	for name, test := range map[string]struct {
		files fstest.MapFS
		o     templates.Options
		data  any
		want  string
	}{
		"no folder":                  {folder(), templates.Options{}, nil, "templates f: open f: file does not exist"},
		"no objects":                 {folder("_a.yaml", "", "b.txt", ""), templates.Options{}, nil, "templates f: no file has objects; name those that do .yaml, and not with _ or a point in front"},
		"no template":                {folder("a.yaml", "a\n{{ if }}"), templates.Options{}, nil, "templates f: a.yaml:2: missing value for if"},
		"missing value":              {folder("a.yaml", object("{{ .a }}")), templates.Options{}, map[string]any{}, "templates f: a.yaml:5, as rendered: it has <no value>, which is printed for a value that is missing; set it, or use the function default or required"},
		"missing field":              {folder("a.yaml", object("{{ .Unknown }}")), templates.Options{}, typed{}, "templates f: a.yaml:5:12: <.Unknown>: can't evaluate field Unknown in type templates_test.typed"},
		"missing in what is encoded": {folder("a.yaml", object(`{{ include "h" . | b64enc }}`), "_h.tpl", `{{ define "h" }}pw={{ .x }}{{ end }}`), templates.Options{}, map[string]any{}, `templates f: a.yaml:5:12: <include "h" .>: error calling include: h:1, as rendered: it has <no value>, which is printed for a value that is missing; set it, or use the function default or required`},
		"nil pointer":                {folder("a.yaml", object("{{ .P }}")), templates.Options{}, struct{ P *string }{}, "templates f: a.yaml:5, as rendered: it has <nil>, which is printed for a value that is missing; set it, or use the function default or required"},
		"no end of a document":       {folder("a.yaml", object("1")+"...\n"+object("2")), templates.Options{}, nil, "templates f: a.yaml:1: another document follows in it; begin each with a line that is ---"},
		"kind that is no text":       {folder("a.yaml", "apiVersion: v1\nkind: 1\nmetadata: {name: a}\nstringData: {password: TOPSECRET}\n"), templates.Options{}, nil, "templates f: a.yaml:1: it is no object: it lacks apiVersion or kind"},
		"version that is none":       {folder("a.yaml", "apiVersion: a/b/c\nkind: Secret\nmetadata: {name: a}\nstringData: {password: TOPSECRET}\n"), templates.Options{}, nil, `templates f: a.yaml:1: it is no object: its apiVersion is "a/b/c"`},
		"key that is no text":        {folder("a.yaml", "apiVersion: v1\nkind: Secret\n{password: TOPSECRET}: x\n"), templates.Options{}, nil, "templates f: a.yaml:1: it is no YAML: a key is no text"},
		"label in a list":            {folder("a.yaml", "\n\n---\n\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: 1}}}\n"), templates.Options{}, nil, "templates f: a.yaml:5: the labels of the Pod a have a: 1, which is no text; quote it"},
		"blank lines first":          {folder("a.yaml", "\n\n\n\na: b\nc: [\n"), templates.Options{}, nil, "templates f: a.yaml:6: it is no YAML: did not find expected node content"},
		"required":                   {folder("a.yaml", object(`{{ required "set a" .a }}`)), templates.Options{}, map[string]any{}, `templates f: a.yaml:5:12: <required "set a" .a>: error calling required: set a`},
		"no YAML":                    {folder("a.yaml", "---\nb: [\n"), templates.Options{}, nil, "templates f: a.yaml:2: it is no YAML: did not find expected node content"},
		"no object":                  {folder("a.yaml", object("1")+"---\nb: 1\n"), templates.Options{}, nil, "templates f: a.yaml:7: it is no object: it lacks apiVersion or kind"},
		"no name":                    {folder("a.yaml", "---\napiVersion: v1\nkind: Pod\n"), templates.Options{}, nil, "templates f: a.yaml:2: the Pod has no metadata.name"},
		"twice":                      {folder("a.yaml", object("1"), "b.yaml", object("2")), templates.Options{}, nil, "templates f: b.yaml:1: the ConfigMap a is there twice; the other one is in a.yaml:1"},
		"two files":                  {folder("a.yaml", object("1"), "a.yaml.tpl", object("2")), templates.Options{Suffix: ".tpl"}, nil, "templates f: both a.yaml and a.yaml.tpl are a.yaml when they are rendered; delete one"},
		"no end":                     {folder("a.yaml", `{{ include "a.yaml" . }}`), templates.Options{}, nil, "1000 templates include each other; does one include itself?"},
		"no end in tpl":              {folder("a.yaml", `{{ tpl .a . }}`), templates.Options{}, map[string]any{"a": "{{ tpl .a . }}"}, "1000 templates include each other; does one include itself?"},
		"no file":                    {folder("a.yaml", object(`{{ readFile "../b" }}`)), templates.Options{}, nil, `templates f: a.yaml:5:12: <readFile "../b">: error calling readFile: there is no file ../b in the folder`},
		"no component":               {folder("a.yaml", object("{{ component.GetName }}")), templates.Options{}, nil, "templates f: a.yaml:5:12: <component>: error calling component: component: the context is not that of a generator or a hook"},
		"no cluster":                 {folder("a.yaml", object("{{ kubernetesVersion.Major }}")), templates.Options{}, nil, "templates f: a.yaml:5:12: <kubernetesVersion>: error calling kubernetesVersion: there is no component"},
		"not found":                  {folder("a.yaml", object(`{{ mustLookup "v1" "Secret" "ns" "a" }}`)), templates.Options{}, nil, `templates f: a.yaml:5:12: <mustLookup "v1" "Secret" "ns" "a">: error calling mustLookup: Secret "a" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := render(t, test.files, test.o, test.data)
			if err == nil || !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "TOPSECRET") {
				t.Error("the error has what is secret")
			}
			if err != nil && len(err.Error()) > 2500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	t.Run("suffix", func(t *testing.T) {
		t.Parallel()
		files := folder("a.yaml.tpl", object(`{{ readFile "b.json" | quote }}`), "b.json", "{{", "_c.yaml", "{{")
		if got := value(t, files, templates.Options{Suffix: ".tpl"}, nil); got != "{{" {
			t.Errorf("the value is %v", got)
		}
	})
	t.Run("delimiters", func(t *testing.T) {
		t.Parallel()
		if got := value(t, folder("a.yaml", object("'{{ [[ .a ]] }}'")), templates.Options{Left: "[[", Right: "]]"}, map[string]any{"a": 1}); got != "{{ 1 }}" {
			t.Errorf("the value is %v", got)
		}
	})
	t.Run("kustomization", func(t *testing.T) {
		t.Parallel()
		files := folder("kustomization.yaml", "resources: [parts/a.yaml]\nnamePrefix: {{ name }}-\n", "parts/a.yaml", object("{{ .a }}"))
		build := func(files map[string]string) (component.Set, error) { return kustomize.Files(files, ".") }
		set, err := render(t, files, templates.Options{Build: build}, map[string]any{"a": "1"})
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Objects()[0].GetName(); got != "n-a" {
			t.Errorf("the name is %s", got)
		}
		if set, err = render(t, folder("parts/a.yaml", object("1")), templates.Options{Build: build}, nil); err != nil || len(set.Objects()) != 1 {
			t.Errorf("a folder without a kustomization has %d objects, %v", len(set.Objects()), err)
		}
		_, err = render(t, files, templates.Options{Build: build}, map[string]any{"a": "["})
		if want := "templates f: kustomization .: "; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "a.yaml") {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestDocuments: a document may begin in the line that separates it, and text with dashes is no separator.
func TestDocuments(t *testing.T) {
	t.Parallel()
	text := "# before\n--- # first\n" + strings.Replace(object("|\n    ---\n    text"), "name: a", "name: first", 1) +
		"--- {apiVersion: v1, kind: Pod, metadata: {name: second}}\n---\r\n\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: third}}\n...\n"
	set, err := render(t, folder("a.yaml", text), templates.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range set.Objects() {
		names = append(names, o.GetName())
	}
	if diff := cmp.Diff([]string{"first", "second", "third"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVersion: the version follows the files, and nothing else.
func TestVersion(t *testing.T) {
	t.Parallel()
	version := func(files fstest.MapFS, o templates.Options) string {
		g, err := templates.NewGenerator(files, "f", o)
		if err != nil {
			t.Fatal(err)
		}
		return g.Version()
	}
	first := version(folder("a.yaml", "1"), templates.Options{})
	if again := version(folder("a.yaml", "1"), templates.Options{}); again != first {
		t.Error("the same files have two versions")
	}
	for name, other := range map[string]string{
		"a template": version(folder("a.yaml", "2"), templates.Options{}), "a file": version(folder("a.yaml", "1", "b", ""), templates.Options{}),
		"a name": version(folder("b.yaml", "1"), templates.Options{}), "options": version(folder("a.yaml", "1"), templates.Options{Left: "<"}),
	} {
		if other == first {
			t.Errorf("another version is missing for another %s", name)
		}
	}
}

// TestManyAtATime: renderings in several goroutines do not see each other's data.
func TestManyAtATime(t *testing.T) {
	t.Parallel()
	g, err := templates.NewGenerator(folder("a.yaml", object(`{{ tpl "{{ include \"v\" . }}" . }}`), "_h.tpl", `{{ define "v" }}{{ . }}-{{ name }}{{ end }}`), "f", templates.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			letter := string(rune('a' + i))
			for range 50 {
				set, err := g.Render(t.Context(), templates.Request{Name: letter, Data: letter})
				if err != nil {
					t.Error(err)
					return
				}
				u, _ := set.Objects()[0].(*unstructured.Unstructured)
				if got, _, _ := unstructured.NestedString(u.Object, "data", "value"); got != letter+"-"+letter {
					t.Errorf("the value for %s is %s", letter, got)
				}
			}
		})
	}
	wait.Wait()
}

func TestParameters(t *testing.T) {
	t.Parallel()
	files := folder("p.yaml", `{"image": "shop:{{ .version }}", "host": "{{ name }}.{{ namespace }}", "n": {{ .n }}, "all": {{ toJson . }}}`)
	p, err := templates.NewParameters(files, "f/p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	in := parameters{"version": "1.2", "n": int64(5)}
	out, err := p.TransformParameters("ns", "a", in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"image": "shop:1.2", "host": "a.ns", "n": int64(5), "all": map[string]any{"version": "1.2", "n": int64(5), "Namespace": "ns", "Name": "a"},
	}, out.ToUnstructured()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p, err = templates.NewParameters(folder("p.yaml", "{{ .a }}"), "f/p.yaml"); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"":  "template f/p.yaml: p.yaml:1, as rendered: it has <no value>, which is printed for a value that is missing; set it, or use the function default or required",
		"[": "template f/p.yaml: p.yaml:1: it is no YAML: did not find expected node content",
	} {
		in := parameters{"a": value}
		if value == "" {
			delete(in, "a")
		}
		if _, err := p.TransformParameters("ns", "a", in); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	if _, err := templates.NewParameters(folder("p.yaml", "{{"), "f/p.yaml"); err == nil {
		t.Error("a text that is no template is taken")
	}
}

// parameters are those of a generator.
type parameters map[string]any

func (p parameters) ToUnstructured() map[string]any { return p }
