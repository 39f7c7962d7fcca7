package plain_test

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/trimtab-dev/trimtab/internal/plain"
)

func TestText(t *testing.T) {
	tests := map[string]struct{ why, in, want string }{
		"one line":             {"a table has lines", "a\n\tb  c\r\n", "a b c"},
		"the end":              {"a sentence goes on behind it", "it broke.; ", "it broke"},
		"no UTF-8":             {"the API server replaces it, and nothing would ever be as written", "a\xffb", "a\uFFFDb"},
		"control characters":   {"a terminal obeys them", "a\x1b[31mb\x00", "a\uFFFD[31mb\uFFFD"},
		"direction":            {"what is read must be what is there", "a\u202eb", "a\uFFFDb"},
		"a request's id":       {"another one each time", "denied (request id: 4f1c-99)", "denied"},
		"a pointer":            {"another one each time", "map at 0xc000123456 is nil", "map at (address) is nil"},
		"a time":               {"another one each time", "until 2026-01-02T03:04:05Z it rests", "until (time) it rests"},
		"an ephemeral port":    {"another one each time", "read tcp 10.0.0.1:33412->10.0.0.2:5432: reset", "read tcp 10.0.0.2:5432: reset"},
		"userinfo":             {"a password", `dial "nats://app:hunter2@nats:4222"`, `dial "nats://(sensitive)@nats:4222"`},
		"a token as user":      {"as some systems have it", "https://ghp_x1@host/a", "https://(sensitive)@host/a"},
		"slash in a password":  {"which should have been escaped", "postgres://app:hun/ter2@db/x", "postgres://(sensitive)@db/x"},
		"an @ in a path":       {"it is no user", "https://host/@scope/x", "https://host/@scope/x"},
		"net/url":              {"it quotes what it stumbles over", `parse "x://a:hunter2": invalid port ":hunter2" after host`, `parse "x://a:hunter2": invalid port (sensitive) after host`},
		"key and value":        {"", "host=db password=hunter2 user=app", "host=db password=(sensitive) user=app"},
		"quoted":               {"", `password='hunter 2' x`, "password=(sensitive) x"},
		"JSON":                 {"", `{"apiKey": "hunter2", "a": 1}`, `{"apiKey": (sensitive), "a": 1}`},
		"JSON in JSON":         {"", `"{\"token\":\"hunter2\"}"`, `"{\"token\":(sensitive)}"`},
		"query":                {"", "GET /x?token=hunter2&a=b", "GET /x?token=(sensitive)&a=b"},
		"header":               {"", "Authorization: Basic aHVudGVyMg==", "Authorization: (sensitive)"},
		"bearer":               {"", `sent "Bearer hunter2"`, `sent "Bearer (sensitive)"`},
		"prose about tokens":   {"what is no secret is kept", "the bearer token is not valid; get the token: not found", "the bearer token is not valid; get the token: not found"},
		"MySQL":                {"", "app:hunter2@tcp(db:3306)/x", "(sensitive)@tcp(db:3306)/x"},
		"an image":             {"", "pull nats:2.10@sha256:abc", "pull nats:2.10@sha256:abc"},
		"a web token":          {"", "got eyJhbGciOi.eyJzdWIi.c2ln", "got (sensitive)"},
		"a private key":        {"", "-----BEGIN RSA PRIVATE KEY-----\nMIIhunter2\n-----END RSA PRIVATE KEY----- x", "(sensitive) x"},
		"local port":           {"differs per connection", "read tcp 127.0.0.1:43434->10.0.0.1:4222: i/o timeout", "read tcp 10.0.0.1:4222: i/o timeout"},
		"local v6 port":        {"differs per connection", "write tcp [::1]:43434->[::1]:80: broken pipe", "write tcp [::1]:80: broken pipe"},
		"request id":           {"differs per request", "AccessDenied: no (Request ID: 4b1f-99a), go away", "AccessDenied: no, go away"},
		"request id key":       {"differs per request", `quota exceeded request_id=req_8812`, "quota exceeded"},
		"status and id":        {"differs per request", "api error, RequestID: 7H2K3, HostId", "api error, HostId"},
		"amazon":               {"differs per request", "x-amzn-requestid: 33aa-1", ""},
		"pointer":              {"differs per process", "bad value 0xc000123450 in field", "bad value (address) in field"},
		"time":                 {"differs per moment", "expired at 2026-01-05T10:11:12.131415Z for good", "expired at (time) for good"},
		"lines":                {"conditions are one line", "first\n\tsecond ", "first second"},
		"innocent":             {"nothing to take out", "stream \"orders\" has 3 consumers: id 17 is taken", "stream \"orders\" has 3 consumers: id 17 is taken"},
		"request words":        {"no id in it", "the request identifies no user", "the request identifies no user"},
		"a name with a secret": {"the name is what people need", `secret "shop/db" not found`, `secret "shop/db" not found`},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if got := plain.Text(test.in); got != test.want {
				t.Errorf("%s\n got %q\nwant %q", test.why, got, test.want)
			}
		})
	}
}

func TestClip(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	got := plain.Clip(long, plain.Longest)
	if len(got) > plain.Longest || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä …") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-10:])
	}
	if got := plain.Clip("short", 5); got != "short" {
		t.Errorf("what fits became %q", got)
	}
}

func TestReason(t *testing.T) {
	tests := map[string]string{
		"QuotaExceeded": "QuotaExceeded", "quota exceeded (10/10)": "QuotaExceeded1010", "4xx": "xx", "": "Unknown", "日本": "Unknown",
		"a:": "A", strings.Repeat("x", 2000): strings.Repeat("X", 1) + strings.Repeat("x", 127),
	}
	for in, want := range tests {
		if got := plain.Reason(in); got != want {
			t.Errorf("reason %.40q became %.40q, want %.40q", in, got, want)
		}
	}
}

// canary is a secret that must not survive in any of the forms.
const canary = "hunter2canary"

// forms are how credentials come in texts; # stands for the secret.
func forms() []string {
	return []string{
		"nats://app:#@nats:4222", "postgres://#@db", "amqp://u:#x/y@h", "password=#", "PASSWORD: #", `"password":"#"`, `\"secret\":\"#\"`,
		"api_key='#'", "Authorization: Bearer #", "authorization=Basic #", "Bearer #", "x?access_token=#&y=1", "app:#@tcp(db)/x",
		"-----BEGIN PRIVATE KEY-----#-----END PRIVATE KEY-----", "passphrase = #", "clientSecret=#",
	}
}

// FuzzText: whatever comes in, what goes out is fit for Kubernetes, does not change when it
// comes in again, and a credential beside it does not survive.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\xff\xfeb", "://@", "request id 4", "x: y; z", strings.Repeat("ü", 600), "\\\"", "0x1234567", "password=", "a:b@c:d@e"} {
		f.Add(seed, seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, before, after string, form uint8) {
		check(t, before+after)
		all := forms()
		secret := strings.ReplaceAll(all[int(form)%len(all)], "#", canary)
		if strings.Contains(before, canary) || strings.Contains(after, canary) {
			return
		}
		out := check(t, before+" "+secret+" "+after)
		if strings.Contains(out, canary) {
			t.Errorf("the secret survives: %q became %q", before+" "+secret+" "+after, out)
		}
	})
}

func check(t *testing.T, in string) string {
	t.Helper()
	out := plain.Text(in)
	if !utf8.ValidString(out) || len(out) > plain.Longest || strings.ContainsAny(out, "\n\r\t") {
		t.Errorf("%q became %q, which is not fit", in, out)
	}
	if again := plain.Text(out); again != out {
		t.Errorf("%q became %q, and then %q", in, out, again)
	}
	if r := plain.Reason(in); len(r) > 128 || plain.Reason(r) != r {
		t.Errorf("reason of %q is %q", in, r)
	}
	return out
}

// TestLine: texts that are quickly seen to be one line are what the slow way makes of them.
func TestLine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "bc", " ", "  ", "\t", "\n", "é", "\u00a0", "\u2028"}
	for range 10_000 {
		var s strings.Builder
		for range random.IntN(6) {
			s.WriteString(pieces[random.IntN(len(pieces))])
		}
		if want, got := strings.Join(strings.Fields(s.String()), " "), plain.Line(s.String()); got != want {
			t.Fatalf("Line(%q) = %q, want %q", s.String(), got, want)
		}
	}
}

// TestShortcuts compares what most texts take with what it stands for.
func TestShortcuts(t *testing.T) {
	slow := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	some := []string{"", "a", "Z", "0", "_", ",", ":", "@", "[", "`", "{", "é", " ", "\n", "\x7f", strings.Repeat("x", 127)}
	for _, a := range some {
		for _, b := range some {
			for _, c := range some {
				s := a + b + c
				if got, want := plain.Reason(s) == s, len(s) <= 128 && slow.MatchString(s); got != want {
					t.Errorf("%q is kept: %t, want %t", s, got, want)
				}
			}
		}
	}
	for _, s := range []string{
		"-----BEGIN RSA PRIVATE KEY-----\nx", "https://a:b@host", `INVALID: invalid port ":b" after host`, "Proxy-Authorization: Basic x", "BEARER x",
		"a eyJabcd.ef", "PASSWD=x", "paſſword=x", "my.pwd=x", "Passphrase=x", "SECRET=x", "tokens=x", "Api_Key=x", "access\u212aey=x", "private-key=x",
		"credential=x", "Signature=x", "sig=x", "a:b@host",
	} {
		if !strings.Contains(plain.Safe(s), plain.Hidden) {
			t.Errorf("%q is kept as %q", s, plain.Safe(s))
		}
	}
	for r := range rune(0x3000) {
		s := "a" + string(r)
		want := unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
		if got := plain.Safe(s) != s; got != want {
			t.Errorf("%q is replaced: %t, want %t", s, got, want)
		}
	}
}
