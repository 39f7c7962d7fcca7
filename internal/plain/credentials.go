package plain

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// suspect reports, cheaply, whether s may contain a credential in one of the forms that [hide] knows.
func suspect(s string) bool {
	return strings.ContainsAny(s, "@=:") || strings.Contains(s, "earer") || strings.Contains(s, "EARER") ||
		strings.Contains(s, "eyJ") || strings.Contains(s, "-----BEGIN") || strings.Contains(s, "escape")
}

// hide removes credentials. An expression is tried only on what contains a word that it wants, because most texts contain none and
// an attempt takes long.
func hide(s string) string {
	folded := strings.ReplaceAll(strings.ToLower(s), "ſ", "s") // as (?i) folds letters
	has := func(word string) bool { return strings.Contains(folded, word) }
	if has("-----begin") {
		s = pem.ReplaceAllString(s, Hidden)
	}
	s = hideUserinfo(s)
	if has("invalid") {
		s = badURL.ReplaceAllString(s, "$1 "+Hidden)
	}
	if has("authorization") {
		s = authorization.ReplaceAllString(s, "$1: "+Hidden)
	}
	if has("bearer") {
		s = bearer.ReplaceAllStringFunc(s, hideBearer)
	}
	if has("eyj") {
		s = webToken.ReplaceAllString(s, Hidden)
	}
	if slices.ContainsFunc(assigned, has) {
		s = assignment.ReplaceAllStringFunc(s, hideAssigned)
	}
	if has("@") {
		s = account.ReplaceAllStringFunc(s, hideAccount)
	}
	return s
}

// assigned are words of which each name of a secret in [assignment] has one.
var assigned = []string{"passw", "pwd", "passphrase", "secret", "token", "key", "credential", "sig"}

var (
	pem = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)

	// badURL matches how package net/url quotes the part of a URL that it cannot parse, which may be
	// part of a password.
	badURL = regexp.MustCompile(`(invalid port|invalid URL escape) "[^"]*"`)

	authorization = regexp.MustCompile(`(?i)\b((?:proxy-)?authorization)\\*["']?\s*[:=]\s*\\*["']?\[?` +
		`(?:(?:basic|bearer|digest|negotiate|ntlm|token|apikey|aws4-hmac-sha256)\s+)?[^\s"',;\]\\]+`)
	bearer   = regexp.MustCompile(`(?i)\bbearer\s+([^\s"',;]+)`)
	webToken = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]+){1,4}`)

	// assignment matches the name of a secret and its value.
	assignment = regexp.MustCompile(`(?i)([\w.-]*(?:passw(?:or)?d|passwd|pwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credentials?|signature|sig)[\w.-]*\\*["']?)` +
		`(\s*[:=]\s*)(\\+"[^"]*"|\\+'[^']*'|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\s"',;&)\]}]+)`)

	// account matches user:password@host without a scheme, as MySQL drivers write it.
	account = regexp.MustCompile(`[\w.+-]+:(?:[^\s"'<>]+@(?:tcp|unix)\(|[^\s@"'<>()/]+@[\w.-]*)`)
)

// hideUserinfo replaces what is between :// and @ in URLs: passwords, and tokens, which some systems
// put in the place of the user.
func hideUserinfo(s string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "://")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString("://")
		if at := endOfUserinfo(rest); at >= 0 {
			out.WriteString(Hidden)
			rest = rest[at:]
		}
		s = rest
	}
}

// endOfUserinfo returns the position of the @ in what follows ://, or -1 if there is no user. A
// password may contain characters that should have been escaped.
func endOfUserinfo(rest string) int {
	whole := rest
	if end := strings.IndexAny(rest, " \t\r\n\"'`<>"); end >= 0 {
		whole = rest[:end]
	}
	authority := whole
	if end := strings.IndexAny(whole, "/?#,"); end >= 0 {
		authority = whole[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	if _, port, found := strings.Cut(authority, ":"); at >= 0 || !found || strings.Trim(port, "0123456789") == "" {
		return at
	}
	if next := strings.Index(whole, "://"); next >= 0 { // a list of URLs
		whole = whole[:next]
	}
	return strings.LastIndexByte(whole, '@')
}

// hideBearer removes bearer tokens, but keeps prose such as "the bearer token is not valid".
func hideBearer(s string) string {
	scheme, value, _ := strings.Cut(s, " ")
	switch strings.ToLower(strings.TrimRight(strings.TrimSpace(value), ".:")) {
	case "token", "tokens", "auth", "authentication", "authorization", "scheme", "is", "was", "of", "not", Hidden:
		return s
	}
	return scheme + " " + Hidden
}

// hideAssigned removes the value. After a colon and a blank there is often prose, as in "get the token:
// not found". It is kept unless the name is that of a password or the value looks generated.
func hideAssigned(s string) string {
	m := assignment.FindStringSubmatch(s)
	name, between, value := m[1], m[2], m[3]
	if strings.HasPrefix(value, Hidden[:len(Hidden)-1]) {
		return s
	}
	prose := strings.HasPrefix(strings.TrimSpace(between), ":") && strings.HasSuffix(between, " ") &&
		!strings.HasSuffix(name, `"`) && !strings.HasSuffix(name, "'")
	if prose && !isPassword(name) && !opaque(value) {
		return s
	}
	return name + between + Hidden
}

// NamesSecret reports whether the last element of a field's path is a name for a secret, as in
// "spec.login.password".
func NamesSecret(path string) bool {
	name := strings.ToLower(path[strings.LastIndexAny(path, ".[")+1:])
	return secretName.MatchString(strings.TrimRight(name, "]\"'"))
}

var secretName = regexp.MustCompile(`(?:passw(?:or)?d|pwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key)$`)

func isPassword(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "passw") || strings.Contains(name, "pwd") || strings.Contains(name, "passphrase")
}

// opaque reports whether a value looks generated, in contrast to a word.
func opaque(value string) bool {
	return len(value) >= 12 && strings.ContainsFunc(value, unicode.IsDigit)
}

// hideAccount removes accounts, but keeps images, whose digest follows an @.
func hideAccount(s string) string {
	at := strings.LastIndexByte(s, '@')
	host := s[at+1:]
	if host == "sha256" || host == "sha512" || strings.HasSuffix(s[:at], Hidden) {
		return s
	}
	return Hidden + "@" + host
}
