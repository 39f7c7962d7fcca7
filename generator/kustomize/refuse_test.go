package kustomize_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
)

// files returns a file system.
func files(all map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range all {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// app is a kustomization of a ConfigMap, with more fields and files.
func app(fields string, more map[string]string) map[string]string {
	all := map[string]string{
		"app/kustomization.yaml": "resources:\n- a.yaml\n" + fields,
		"app/a.yaml":             configMap,
		"base/a.yaml":            configMap,
	}
	maps.Copy(all, more)
	return all
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// says reports whether an error is one line with a text.
func says(t *testing.T, why string, err error, want string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%s: no error", why)
	case !strings.Contains(err.Error(), want):
		t.Errorf("%s: the error is\n\t%v\nand lacks\n\t%s", why, err, want)
	case strings.Contains(err.Error(), "\n") || strings.Contains(strings.ReplaceAll(err.Error(), "../../trimtab-", ""), "/trimtab-"):
		t.Errorf("%s: it shows how it works: %v", why, err)
	}
}

// offline has a server that nobody may ask, and programs that nobody may start. It returns the URL of the server.
func offline(t *testing.T) string {
	t.Helper()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(configMap))
	}))
	t.Cleanup(server.Close)
	programs, started := t.TempDir(), filepath.Join(t.TempDir(), "started")
	for _, name := range []string{"git", "helm", "docker", "sh", "echo"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho $0 $* >>"+started+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs)

	// Kustomize by itself does ask and start.
	k := filesys.MakeFsInMemory()
	for name, base := range map[string]string{"/file": server.URL + "/a.yaml", "/git": "git@example.org:a/b"} {
		if err := k.WriteFile(name+"/kustomization.yaml", []byte("resources: ['"+base+"']")); err != nil {
			t.Fatal(err)
		}
		_, _ = krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(k, name)
	}
	if _, err := os.Stat(started); err != nil || asked.Load() == 0 {
		t.Fatalf("the test would not notice: %d requests, programs: %v", asked.Load(), err)
	}
	asked.Store(0)
	if err := os.Remove(started); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := asked.Load(); n > 0 {
			t.Errorf("%d requests were sent", n)
		}
		if text, err := os.ReadFile(started); err == nil {
			t.Errorf("programs were started:\n%s", text)
		}
	})
	return server.URL
}

const remote = "is remote, and nothing is fetched; add a copy of it to the file system"

func TestRemoteIsRefused(t *testing.T) {
	url := offline(t)
	plugin := func(kind, fields string) string {
		return "transformers:\n- |-\n  apiVersion: builtin\n  kind: " + kind + "\n  metadata: {name: x}\n  " + fields + "\n"
	}
	for name, test := range map[string]struct {
		why, fields string
		more        map[string]string
		want        string
	}{
		"resource":        {"a file from a server", "bases:\n- " + url + "/a.yaml\n", nil, "app/kustomization.yaml:4: " + url + "/a.yaml " + remote},
		"https":           {"the usual remote base", "bases: ['https://github.com/org/repo//base?ref=v1']\n", nil, "https://github.com/org/repo//base?ref=v1 " + remote},
		"case":            {"schemes have no case", "bases: ['HTTPS://github.com/org/repo']\n", nil, remote},
		"opaque":          {"a URL without slashes", "bases: ['http:a.yaml']\n", nil, remote},
		"git":             {"git by ssh", "bases: ['git@github.com:org/repo.git']\n", nil, remote},
		"user":            {"any user of any host", "bases: ['me@example.org:org/repo']\n", nil, remote},
		"ssh":             {"git by ssh, as a URL", "bases: ['ssh://git@example.org/org/repo']\n", nil, remote},
		"forced":          {"an old prefix", "bases: ['git::https://example.org/org/repo.git']\n", nil, remote},
		"file":            {"a repository on the disk", "bases: ['file:///tmp/repo']\n", nil, remote},
		"short":           {"GitHub without a scheme", "bases: ['github.com/org/repo?ref=main']\n", nil, remote},
		"short and local": {"a folder with that name does not help with kustomize", "bases: [github.com/org/repo]\n", map[string]string{"app/github.com/org/repo/kustomization.yaml": "namePrefix: a"}, remote},
		"component":       {"components can be remote", "components: ['github.com/org/repo']\n", nil, remote},
		"nested":          {"in a base", "bases: [../base]\n", map[string]string{"base/kustomization.yaml": "resources: [" + url + "/a.yaml]"}, "base/kustomization.yaml:1: " + url},
		"in a component":  {"in a component", "components: [../part]\n", map[string]string{"part/kustomization.yaml": "kind: Component\nresources: [" + url + "/a.yaml]"}, "part/kustomization.yaml:2: " + url},
		"crds":            {"every field with files", "crds: ['" + url + "']\n", nil, remote},
		"configurations":  {"every field with files", "configurations: ['" + url + "']\n", nil, remote},
		"patch":           {"every field with files", "patches: [{path: '" + url + "'}]\n", nil, remote},
		"json patch":      {"every field with files", "patchesJson6902: [{path: '" + url + "', target: {kind: ConfigMap, name: a}}]\n", nil, remote},
		"strategic patch": {"every field with files", "patchesStrategicMerge: ['" + url + "']\n", nil, remote},
		"replacement":     {"every field with files", "replacements: [{path: '" + url + "'}]\n", nil, remote},
		"map":             {"every field with files", "configMapGenerator: [{name: x, files: ['" + url + "']}]\n", nil, remote},
		"map with key":    {"every field with files", "configMapGenerator: [{name: x, files: ['key=" + url + "']}]\n", nil, remote},
		"map with query":  {"it is cut at the = of a query", "configMapGenerator: [{name: x, files: ['" + url + "?a=b']}]\n", nil, remote},
		"map of lines":    {"every field with files", "configMapGenerator: [{name: x, envs: ['" + url + "']}]\n", nil, remote},
		"secret":          {"every field with files", "secretGenerator: [{name: x, env: '" + url + "'}]\n", nil, remote},
		"generators":      {"plugins can be remote", "generators: ['" + url + "']\n", nil, remote},
		"transformers":    {"plugins can be remote", "transformers: ['" + url + "']\n", nil, remote},
		"validators":      {"plugins can be remote", "validators: ['" + url + "']\n", nil, remote},
		"inline plugin":   {"a plugin reads a file", plugin("PatchTransformer", "path: "+url), nil, remote},
		"plugin's case":   {"fields of plugins have no case", plugin("PatchTransformer", "PATH: "+url), nil, remote},
		"plugin's paths":  {"a plugin reads files", plugin("PatchStrategicMergeTransformer", "paths: ["+url+"]"), nil, remote},
		"plugin's targets": {
			"a plugin reads a file", plugin("ValueAddTransformer", "targetFilePath: "+url), nil, remote,
		},
		"plugin's replacements": {"a plugin reads files", plugin("ReplacementTransformer", "replacements: [{path: '"+url+"'}]"), nil, remote},
		"plugin's files": {
			"a plugin reads files", "generators: [g.yaml]\n",
			map[string]string{"app/g.yaml": "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: x}\nfiles: ['" + url + "']\n"},
			"app/g.yaml:4: " + url + " " + remote,
		},
		"plugin in a list": {
			"kustomize unpacks lists", "transformers: [t.yaml]\n",
			map[string]string{"app/t.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, path: '" + url + "'}\n"},
			remote,
		},
		"plugin that is patched": {
			"the configuration of a plugin is what its kustomization builds", "transformers: [../t]\n",
			map[string]string{
				"t/kustomization.yaml": "resources: [t.yaml]\npatches: [{patch: '[{\"op\": \"replace\", \"path\": \"/path\", \"value\": \"" + url + "\"}]', target: {kind: PatchTransformer}}]",
				"t/t.yaml":             "{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, path: a.yaml}",
			},
			remote,
		},
		"line separator": {
			"for YAML this is two lines, for a URL it is one", "transformers: [\"" + url + "/x: 1\\u2028apiVersion: builtin\\u2028kind: PatchTransformer\"]\n", nil, remote,
		},
		"helm": {"kustomize runs helm", "helmCharts: [{name: x, repo: '" + url + "'}]\n", nil, "app/kustomization.yaml:3: kustomize would run helm; render the chart with the package generator/helm"},
		"old helm": {
			"kustomize runs helm", "helmChartInflationGenerator: [{chartName: x, chartRepoUrl: '" + url + "'}]\n", nil, "app/kustomization.yaml:3: kustomize would run helm",
		},
		"helm plugin": {"kustomize runs helm", plugin("HelmChartInflationGenerator", "repo: "+url), nil, "kustomize would run helm"},
		"program": {
			"a plugin that is a program or a Go plugin", "generators: [g.yaml]\n",
			map[string]string{"app/g.yaml": "apiVersion: example.org/v1\nkind: Maker\nmetadata: {name: x}\n"},
			"app/g.yaml:1: kustomize would run a program for the plugin or function Maker, and only its built-in plugins can be used",
		},
		"container": {
			"a function in a container", "validators: [g.yaml]\n",
			map[string]string{"app/g.yaml": "apiVersion: v1\nkind: Fn\nmetadata:\n  name: x\n  annotations:\n    config.kubernetes.io/function: 'container: {image: example.org/x}'\n"},
			"app/g.yaml:1: kustomize would run a program for the plugin or function Fn",
		},
		"unknown plugin": {"a misspelt one", plugin("PatchTransfromer", "path: a.yaml"), nil, "kustomize has no plugin PatchTransfromer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kustomize.NewGenerator(files(app(test.fields, test.more)), "app", kustomize.Options{})
			says(t, test.why, err, test.want)
		})
	}
}

func TestBadInput(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("on the disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		why, fields string
		more        map[string]string
		want        string
	}{
		"missing file":      {"a typo", "- b.yaml\n", nil, "app/kustomization.yaml:3: b.yaml does not exist"},
		"missing patch":     {"a typo", "patches:\n- path: p.yaml\n", nil, "app/kustomization.yaml:4: p.yaml does not exist"},
		"missing map":       {"a typo", "configMapGenerator:\n- name: x\n  files: [k=f.txt]\n", nil, "app/kustomization.yaml:5: f.txt does not exist"},
		"missing component": {"a typo", "components: [../tls]\n", nil, "app/kustomization.yaml:3: ../tls does not exist"},
		"no kustomization":  {"a folder without one", "- ../base\n", nil, "there is no base/kustomization.yaml"},
		"two":               {"two names", "", map[string]string{"app/kustomization.yml": ""}, "there are both app/kustomization.yaml and app/kustomization.yml"},
		"empty":             {"nothing in it", "", map[string]string{"app/kustomization.yaml": ""}, "app/kustomization.yaml: kustomization.yaml is empty"},
		"unknown field":     {"a typo", "namePrefxi: a\n", nil, `app/kustomization.yaml: invalid Kustomization: json: unknown field "namePrefxi"`},
		"no YAML":           {"a tab", "\tnamePrefix: a\n", nil, "app/kustomization.yaml: invalid Kustomization: yaml: line 3"},
		"kind":              {"another kind", "kind: Deployment\n", nil, "app/kustomization.yaml: Failed to read kustomization file"},
		"component":         {"a component is none by itself", "kind: Component\n", nil, "app/kustomization.yaml:3: it is a Component, which belongs in the field components"},
		"base":              {"no component", "components: [../b]\n", map[string]string{"b/kustomization.yaml": "namePrefix: a"}, "b/kustomization.yaml: it is no Component; it belongs in the field resources"},
		"component file":    {"components are folders", "components: [a.yaml]\n", nil, "the component a.yaml is no folder"},
		"cycle":             {"it refers to itself", "- ../b\n", map[string]string{"b/kustomization.yaml": "resources: [../app]"}, "app/kustomization.yaml: there is a cycle"},
		"object no YAML":    {"in the second object", "", map[string]string{"app/a.yaml": configMap + "---\na: b\n c: d: e\n"}, "app/a.yaml: it is no YAML: MalformedYAMLError: yaml: line 6"},
		"two keys":          {"the same key twice", "", map[string]string{"app/a.yaml": configMap + "kind: Secret\n"}, `app/a.yaml: it is no YAML: yaml: unmarshal errors: line 4: mapping key "kind" already defined at line 2`},
		"named twice":       {"the same file", "- ./a.yaml\n", nil, "app/kustomization.yaml:3: ./a.yaml is there twice"},
		"empty path":        {"no file", "- ''\n", nil, "app/kustomization.yaml: a path is empty"},
		"no plugin":         {"a plugin without a kind", "transformers:\n- |-\n  a: b\n  c: d\n", nil, `app/kustomization.yaml:5: what begins with "a: b" is neither a path nor an object`},
		"text":              {"no object", "", map[string]string{"app/a.yaml": "hello\n"}, "app/a.yaml:1: it is no object: it lacks apiVersion or kind"},
		"sequence":          {"no object", "", map[string]string{"app/a.yaml": "- a\n"}, "app/a.yaml:1: it is no object"},
		"no kind":           {"no object", "", map[string]string{"app/a.yaml": configMap + "---\n# none\na: b\n"}, "app/a.yaml:6: it is no object"},
		"no name":           {"no object", "", map[string]string{"app/a.yaml": "apiVersion: v1\nkind: ConfigMap\n"}, "app/a.yaml:1: the ConfigMap has no metadata.name"},
		"twice in a file":   {"the same object", "", map[string]string{"app/a.yaml": configMap + "---\n" + configMap}, "app/a.yaml:5: the ConfigMap a is there twice; the other one is in app/a.yaml:1"},
		"twice in files":    {"the same object", "- b.yaml\n", map[string]string{"app/b.yaml": configMap}, "app/b.yaml:1: the ConfigMap a is there twice; the other one is in app/a.yaml:1"},
		"twice in bases": {
			"the same object", "- ../x\n- ../y\n",
			map[string]string{
				"x/kustomization.yaml": "resources: [x.yaml]\nnamePrefix: x-", "x/x.yaml": configMap,
				"y/kustomization.yaml": "resources: [y.yaml]\nnamePrefix: x-", "y/y.yaml": configMap,
			},
			"app/kustomization.yaml: the ConfigMap x-a is there twice, from x and from y",
		},
		"twice in versions": {
			"one object for the API server", "- b.yaml\n",
			map[string]string{"app/b.yaml": strings.Replace(configMap, "v1", "v2", 1)},
			"the ConfigMap a is there twice, as v1 and v2; see app/a.yaml:1, app/b.yaml:1",
		},
		"absolute":        {"a file on the disk", "configMapGenerator: [{name: x, files: ['" + secret + "']}]\n", nil, secret + " is outside of the file system"},
		"absolute folder": {"a folder on the disk", "- /tmp\n", nil, "/tmp is outside of the file system"},
		"outside":         {"above the file system", "- ../../x\n", nil, "app/kustomization.yaml:3: ../../x is outside of the file system"},
		"internals":       {"what kustomize sees is no way out", "- ../../trimtab-overlay\n", nil, "../../trimtab-overlay is outside of the file system"},
		"file elsewhere":  {"kustomize reads files only below", "- ../base/a.yaml\n", nil, "app/kustomization.yaml:3: ../base/a.yaml is outside of the folder of the kustomization, which can refer to folders there"},
		"patch's YAML":    {"no YAML", "patches:\n- patch: |-\n    a: b\n     c: d\n  target: {kind: ConfigMap}\n", nil, "a patch in app/kustomization.yaml:5: it is no YAML: "},
		"patch file":      {"no YAML", "patches: [{path: p.yaml}]\n", map[string]string{"app/p.yaml": "a: b\n c: d\n"}, "app/p.yaml: it is no YAML: "},
		"patch of none":   {"another name", "patches: [{path: p.yaml}]\n", map[string]string{"app/p.yaml": strings.Replace(configMap, "name: a", "name: b", 1)}, "app/kustomization.yaml: no resource matches strategic merge patch"},
		"empty crd":       {"kustomize panics", "crds: [c.yaml]\n", map[string]string{"app/c.yaml": ""}, "c.yaml is empty"},
		"configuration":   {"another form", "configurations: [c.yaml]\n", map[string]string{"app/c.yaml": "a: b"}, `app/kustomization.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "a"`},
		"in a base":       {"the error is of the base", "- ../b\n", map[string]string{"b/kustomization.yaml": "patches: [{patch: '" + `{"apiVersion": "v1", "kind": "X", "metadata": {"name": "y"}}` + "'}]"}, "b/kustomization.yaml: no resource matches"},
		"openapi":         {"a schema of the process", "openapi: {path: a.yaml}\n", nil, "app/kustomization.yaml:3: the field openapi cannot be used"},
		"literal":         {"a literal without a key can be a secret", "secretGenerator:\n- name: login\n  literals: [hunter2]\n", nil, "app/kustomization.yaml:4: a literal of login has no key; write key=value"},
		"lines":           {"no text", "secretGenerator:\n- name: login\n  envs: [e]\n", map[string]string{"app/e": "a=\xff\n"}, "app/kustomization.yaml:5: e is no text in UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kustomize.NewGenerator(files(app(test.fields, test.more)), "app", kustomize.Options{})
			says(t, test.why, err, test.want)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it shows a secret: %v", err)
			}
		})
	}
	for name, want := range map[string]string{
		"../app": "kustomization ../app: it is outside of the file system", "/app": "kustomization /app: it is outside of the file system",
		"nowhere": "kustomization nowhere: there is no nowhere/kustomization.yaml", "app/a.yaml": "app/a.yaml is a file; name the folder that it is in",
	} {
		_, err := kustomize.NewGenerator(files(app("", nil)), name, kustomize.Options{})
		says(t, "not the path of a kustomization", err, want)
	}
	link := files(app("", nil))
	link["app/link"] = &fstest.MapFile{Mode: os.ModeSymlink, Data: []byte("/etc/passwd")}
	_, err := kustomize.NewGenerator(link, "app", kustomize.Options{})
	says(t, "it may lead out of the file system", err, "app/link is no regular file")
}

// parameters of Generate.
type parameters map[string]any

func (p parameters) ToUnstructured() map[string]any { return api.ToUnstructured(p) }

// Who may write components must not get more out of an operator than its files.
func TestBadOverlays(t *testing.T) {
	url := offline(t)
	g, err := kustomize.NewGenerator(files(app("", map[string]string{
		"part/kustomization.yaml": "kind: Component\nnamePrefix: x-\n",
		"bad/kustomization.yaml":  "kind: Component\nresources: [" + url + "/a]\n",
	})), "app", kustomize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		why        string
		parameters parameters
		want       string
	}{
		"field":      {"a typo", parameters{"image": "x"}, `the parameters are no overlay: invalid Kustomization: json: unknown field "image"`},
		"type":       {"another type", parameters{"images": "x"}, "the parameters are no overlay: invalid Kustomization: "},
		"remote":     {"a request in the name of the operator", parameters{"resources": []string{url}}, "the overlay: " + url + " " + remote},
		"patch":      {"the same", parameters{"patches": []any{parameters{"path": url}}}, remote},
		"plugin":     {"the same", parameters{"transformers": []string{"{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, path: '" + url + "'}"}}, remote},
		"program":    {"a program", parameters{"generators": []string{"{apiVersion: x, kind: Exec, metadata: {name: x}}"}}, "the overlay: kustomize would run a program"},
		"helm":       {"a program", parameters{"helmCharts": []any{parameters{"name": "x"}}}, "the overlay: kustomize would run helm"},
		"schema":     {"for the process", parameters{"openapi": parameters{"version": "v1"}}, "the overlay: the field openapi cannot be used"},
		"file":       {"a file of the operator", parameters{"configMapGenerator": []any{parameters{"name": "x", "files": []string{"/etc/passwd"}}}}, "the overlay: it names /etc/passwd; it can name only folders"},
		"object":     {"a file of the generator", parameters{"resources": []string{"app/a.yaml"}}, "the overlay: it names app/a.yaml; it can name only folders"},
		"outside":    {"above", parameters{"components": []string{"../part"}}, "the overlay: ../part is outside of the file system"},
		"missing":    {"a typo", parameters{"components": []string{"prat"}}, "the overlay: prat does not exist"},
		"bad part":   {"a folder that nothing else refers to", parameters{"components": []string{"bad"}}, "bad/kustomization.yaml:2: " + url + "/a " + remote},
		"no object":  {"a patch without an object", parameters{"patches": []any{parameters{"patch": "{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {a: hunter2}}"}}}, "kustomization app: the overlay: no resource matches"},
		"bad patch":  {"a patch that is none", parameters{"patches": []any{parameters{"patch": "hunter2"}}}, "kustomization app: the overlay: "},
		"no target":  {"a patch of nothing", parameters{"patches": []any{parameters{"patch": "[{\"op\": \"add\", \"path\": \"/data\", \"value\": \"hunter2\"}]"}}}, "kustomization app: the overlay: "},
		"literal":    {"no key", parameters{"secretGenerator": []any{parameters{"name": "x", "literals": []string{"hunter2"}}}}, "the overlay: a literal of x has no key"},
		"same again": {"objects that are there", parameters{"resources": []string{"app"}}, "the overlay: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := g.Generate(t.Context(), "ns", "name", test.parameters)
			says(t, test.why, err, test.want)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it shows a secret: %v", err)
			}
		})
	}
	if _, err := g.Render(kustomize.Build{Overlay: types.Kustomization{Components: []string{"part"}}}); err != nil {
		t.Error(err)
	}
}
