package helm

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"time"
)

// fixed returns functions for golden files in place of those that return something else each time. They return the same
// for the same arguments, on every machine: texts of the right length, a day of the year 2000, and certificates that are
// none.
func fixed(all template.FuncMap) template.FuncMap {
	repeat := func(text string) func(int) string { return func(n int) string { return strings.Repeat(text, n) } }
	out := template.FuncMap{
		"randAlphaNum": repeat("x"), "randAlpha": repeat("x"), "randAscii": repeat("x"), "randNumeric": repeat("0"), "randBytes": repeat("x"),
		"randInt": func(least, _ int) int { return least },
		"shuffle": func(text string) string { return text },
		"uuidv4":  func() string { return "00000000-0000-4000-8000-000000000000" },
		"now":     func() time.Time { return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) },
		"ago":     func(any) string { return "0s" }, "durationRound": func(any) string { return "0s" },
		"genPrivateKey": func(kind string) string { return "private key: " + kind },
		"bcrypt":        func(string) string { return "bcrypt" },
		"htpasswd":      func(user, _ string) string { return user + ":bcrypt" },
		"encryptAES":    func(_, text string) string { return "encrypted: " + text },
	}
	out["date"] = inUTC(all["dateInZone"], "date")
	out["htmlDate"] = inUTC(all["htmlDateInZone"], "htmlDate")
	for _, name := range []string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"} {
		out[name] = certificate(name, reflect.TypeOf(all[name]))
	}
	return out
}

// inUTC returns a function that formats a time as another does in the time zone UTC.
func inUTC(f any, name string) any {
	switch f := f.(type) {
	case func(string, any, string) string:
		return func(layout string, date any) string { return f(layout, date, "UTC") }
	case func(any, string) string:
		return func(date any) string { return f(date, "UTC") }
	}
	panic(fmt.Sprintf("sprig's %s is a %T", name, f)) // a test calls all functions
}

// certificate returns a function like one that makes certificates. Names are not in the result: in tests, they are those
// of namespaces that are different in each run.
func certificate(name string, kind reflect.Type) any {
	return reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value {
		result := reflect.New(kind.Out(0))
		_ = json.Unmarshal(fmt.Appendf(nil, `{"Cert": "certificate of %s", "Key": "key of %s"}`, name, name), result.Interface()) // into a struct with these fields
		return []reflect.Value{result.Elem(), reflect.Zero(kind.Out(1))}
	}).Interface()
}
