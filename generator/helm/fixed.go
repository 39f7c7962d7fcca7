package helm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"time"
)

// fixed returns functions for golden files in place of those that return something else each time. They return the same
// for the same arguments, on every machine: texts of the right length, a day of the year 2000, and certificates that are
// none. So a chart that reads certificates or decrypts texts cannot be rendered like that.
func fixed(all template.FuncMap) template.FuncMap {
	repeat := func(text string) func(int) string { return func(n int) string { return strings.Repeat(text, n) } }
	out := template.FuncMap{
		"randAlphaNum": repeat("x"), "randAlpha": repeat("x"), "randAscii": repeat("x"), "randNumeric": repeat("0"),
		"randBytes": func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) },
		"randInt":   func(least, _ int) int { return least },
		"shuffle":   func(text string) string { return text },
		"uuidv4":    func() string { return "00000000-0000-4000-8000-000000000000" },
		"now":       day,
		"ago":       func(any) string { return "0s" }, "durationRound": func(any) string { return "0s" },
		"genPrivateKey": func(kind string) string { return "private key: " + kind },
		"bcrypt":        func(string) string { return "bcrypt" },
		"htpasswd":      func(user, _ string) string { return user + ":bcrypt" },
		"encryptAES":    func(_, text string) string { return "encrypted: " + text },
	}
	if f, ok := all["dateInZone"].(func(string, any, string) string); ok {
		out["date"] = func(layout string, date any) string { return f(layout, dated(date), "UTC") }
		out["dateInZone"] = func(layout string, date any, zone string) string { return f(layout, dated(date), zone) }
		out["date_in_zone"] = out["dateInZone"]
	}
	if f, ok := all["htmlDateInZone"].(func(any, string) string); ok {
		out["htmlDate"] = func(date any) string { return f(dated(date), "UTC") }
		out["htmlDateInZone"] = func(date any, zone string) string { return f(dated(date), zone) }
	}
	for _, name := range []string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"} {
		out[name] = certificate(name, reflect.TypeOf(all[name]))
	}
	return out
}

// dated returns what sprig takes for a date, and the fixed day for everything else, for which it takes the present one.
func dated(date any) any {
	switch date.(type) {
	case time.Time, *time.Time, int64, int, int32:
		return date
	}
	return day()
}

func day() time.Time { return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) }

// certificate returns a function like one that makes certificates. Names are not in the result: in tests, they are those
// of namespaces that are different in each run.
func certificate(name string, kind reflect.Type) any {
	return reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value {
		result := reflect.New(kind.Out(0))
		_ = json.Unmarshal(fmt.Appendf(nil, `{"Cert": "certificate of %s", "Key": "key of %s"}`, name, name), result.Interface()) // into a struct with these fields
		return []reflect.Value{result.Elem(), reflect.Zero(kind.Out(1))}
	}).Interface()
}
