package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/loop"
)

func TestTerms(t *testing.T) {
	s := settings{adoptionLimit: []string{"always", "shop=never"}, accessLimit: []string{"CU"}, watchNamespaces: []string{"shop"}}
	got, err := s.terms("folder")
	if err != nil {
		t.Fatal(err)
	}
	want := loop.Terms{
		Installation: "folder", Adoption: loop.Limit{"": "always", "shop": "never"}, Access: loop.Limit{"": "CU"},
		Namespaces: []string{"shop"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
	if got.Adoption.In("shop") != "never" || got.Adoption.In("other") != "always" || (loop.Limit{}).In("shop") != "" {
		t.Error("a namespace has the limit of another")
	}
	if !got.Watches("shop") || !got.Watches("") || got.Watches("other") || !(loop.Terms{}).Watches("other") {
		t.Error("a namespace is watched, or is not, against the flag")
	}
	s = settings{installation: "Two Words", adoptionLimit: []string{"allways", "=never", "a=never", "a=always"}, accessLimit: []string{"x=CC"}}
	_, err = s.terms("folder")
	for _, wrong := range []string{`--installation "Two Words"`, "--adoption-limit allways", "--adoption-limit =never", "--adoption-limit a=always: this limit is set twice", "--access-limit x=CC"} {
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("want every problem at once, among them %q; got: %v", wrong, err)
		}
	}
}
