package applied

import (
	"fmt"
	"strings"
	"testing"
)

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	spec := parse([]byte(text))
	if spec == nil {
		t.Fatal(text)
	}
	return spec
}

func TestOf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`"field%d":"value of the field"`, i))
	}
	for name, test := range map[string]struct{ spec, want string }{
		"as it is":     {`{"size":3,"tags":["b","a"],"on":false}`, `{"on":false,"size":3,"tags":["b","a"]}`},
		"nothing":      {`{}`, `{}`},
		"a password":   {`{"auth":{"password":"hunter2","user":"a"}}`, `{"auth":{"password":"sha256:`},
		"a number":     {`{"password":12345678}`, `{"password":"sha256:`},
		"several":      {`{"passwords":["hunter2"]}`, `{"passwords":["sha256:`},
		"below":        {`{"password":{"value":"hunter2"}}`, `{"password":{"value":"sha256:`},
		"in a list":    {`{"users":[{"name":"a","password":"hunter2"}]}`, `{"users":[{"name":"a","password":"sha256:`},
		"a long list":  {`{"names":["` + long + `"]}`, `{"names":["sha256:`},
		"a long value": {`{"script":"` + long + `"}`, `{"script":"sha256:`},
		"a long spec":  {`{"map":{` + strings.Join(many, ",") + `}}`, `{"map":"sha256:`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Of("u", parsed(t, test.spec))
			if err != nil || !strings.HasPrefix(got, test.want) || len(got) > longest || strings.Contains(got, "hunter2") {
				t.Errorf("%.200s, %v", got, err)
			}
			if other, _ := Of("v", parsed(t, test.spec)); strings.Contains(got, marks) == (other == got) {
				t.Errorf("another object: %.200s", other)
			}
		})
	}
}

func TestDiffers(t *testing.T) {
	t.Parallel()
	const spec = `{"pin":"1234","auth":{"password":"hunter2","user":"a"},"size":9007199254740993}`
	for name, test := range map[string]struct {
		before, path string
		want         bool
	}{
		"the same":              {spec, "spec.pin", false},
		"the same, secret":      {spec, "spec.auth.password", false},
		"the same, all of it":   {spec, "spec.auth", false},
		"another":               {`{"pin":"4321","size":3}`, "spec.pin", true},
		"another password":      {`{"auth":{"password":"hunter3","user":"a"}}`, "spec.auth.password", true},
		"of another's password": {`{"auth":{"password":"hunter3","user":"a"}}`, "spec.auth.user", false},
		"a long number":         {`{"size":9007199254740992}`, "spec.size", true},
		"it was not set":        {`{}`, "spec.pin", true},
		"it is not set":         {`{"gone":1}`, "spec.gone", false},
		"within what is text":   {spec, "spec.pin.first", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written, err := Of("u", parsed(t, test.before))
			if err != nil {
				t.Fatal(err)
			}
			if _, got := Differs("u", parsed(t, spec), written, test.path); got != test.want {
				t.Errorf("%t; written: %s", got, written)
			}
		})
	}
	for _, unknown := range []string{"", "{", "null"} {
		_, set := Differs("u", parsed(t, spec), unknown, "spec.pin")
		if _, unset := Differs("u", parsed(t, spec), unknown, "spec.none"); !set || unset {
			t.Errorf("%q: what is not known differs, if it is set", unknown)
		}
	}
}
