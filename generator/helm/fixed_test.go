package helm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/internal/golden"
)

// TestFixed: a golden file of a chart with functions that return something else each time is the same each time.
func TestFixed(t *testing.T) {
	t.Parallel()
	calls := map[string]string{
		`ago now`: "0s", `bcrypt "a"`: "bcrypt", `date "2006-01-02 15:04" now`: "2000-01-01 00:00", `dateInZone "15" now "UTC"`: "00",
		`date_in_zone "15" now "UTC"`: "00", `durationRound now`: "0s", `encryptAES "a" "b"`: "encrypted: b", `genPrivateKey "rsa"`: "private key: rsa",
		`(genCA "a" 1).Cert`: "certificate of genCA", `(genCAWithKey "a" 1 "k").Key`: "key of genCAWithKey",
		`(genSelfSignedCert "a" nil nil 1).Cert`:                      "certificate of genSelfSignedCert",
		`(genSelfSignedCertWithKey "a" nil nil 1 "k").Cert`:           "certificate of genSelfSignedCertWithKey",
		`(genSignedCert "a" nil nil 1 (genCA "b" 1)).Cert`:            "certificate of genSignedCert",
		`(genSignedCertWithKey "a" nil nil 1 (genCA "b" 1) "k").Cert`: "certificate of genSignedCertWithKey",
		`htmlDate now`: "2000-01-01", `date "2006" "x"`: "2000", `htmlDateInZone now "UTC"`: "2000-01-01", `htpasswd "a" "b"`: "a:bcrypt", `now.Year | print`: "2000",
		`randAlpha 3`: "xxx", `randAlphaNum 3`: "xxx", `randAscii 3`: "xxx", `randBytes 3`: "AAAA", `randInt 7 9 | print`: "7", `randNumeric 3`: "000",
		`shuffle "ab"`: "ab", `uuidv4`: "00000000-0000-4000-8000-000000000000",
	}
	want, text := map[string]any{}, strings.Builder{}
	text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n")
	for call, result := range calls {
		text.WriteString("  " + key(call) + ": {{ " + call + " | quote }}\n")
		want[key(call)] = result
	}
	g, err := helm.NewGenerator(chartOf(map[string]string{"templates/a.yaml": text.String()}), "chart", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := g.Render(golden.With(t.Context()), helm.Release{Name: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, set.Objects()[0].(*unstructured.Unstructured).Object["data"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// key makes a key of a ConfigMap of a call.
func key(call string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, call)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	g, err := helm.NewGenerator(chartOf(map[string]string{
		"values.schema.json": `{"properties":{"a":{"type":"string"}}}`, "templates/a.yaml": `{{ fail "it is rendered" }}`,
	}), "chart", helm.Options{Values: map[string]any{"a": 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := "chart demo: values don't meet the specifications of the schema(s) in the following chart(s): demo: - at '/a': got number, want string"
	if err := g.Validate(nil); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if err := g.Validate(map[string]any{"a": "b"}); err != nil {
		t.Error(err)
	}
}
