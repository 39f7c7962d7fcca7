//go:build !race

package fidelity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// normalizer puts names in the place of what two servers may choose as they like: UIDs,
// resourceVersions, times, generated names. Equal things get equal names, in the order in
// which a transcript shows them.
type normalizer struct {
	ns    string
	known map[string]string
	count map[string]int
}

func newNormalizer(ns string) *normalizer {
	return &normalizer{ns: ns, known: map[string]string{}, count: map[string]int{}}
}

// named returns the name of a value.
func (n *normalizer) named(what, v string) string {
	key := what + " " + v
	if _, ok := n.known[key]; !ok {
		n.count[what]++
		n.known[key] = fmt.Sprint(what, n.count[what])
	}
	return n.known[key]
}

var (
	uidPattern      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	generated       = regexp.MustCompile(`\bg-[a-z0-9]{5}\b`)
	revisionPattern = regexp.MustCompile(`(ResourceVersion in (?:precondition|object meta): |ResourceVersion in (?:the precondition|record) \(|resourceVersion\\*"?:(?:\\*")?)(\d+)`)
	portPattern     = regexp.MustCompile(`(\b|odePort\\*":)3[0-2]\d\d\d(/|\D)`) // in tables and messages
	addressPattern  = regexp.MustCompile(`\b10\.(96|0)\.\d+\.\d+\b`)
	// Messages quote whole objects; the entries are sorted by times that have seconds.
	quotedFields = regexp.MustCompile(`managedFields\\*":\[.*?\],\\*"name\\*":`)
	// Which of several errors of this kind are listed, and in which order, is by chance.
	typedErrors = regexp.MustCompile(`(?s)(failed to (?:create typed|convert)[^(]*\([^)]*\): ).*`)
	// Requests use the year 2020 alone.
	timePattern = regexp.MustCompile(`20(?:[013-9]\d|2[1-9])-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	agePattern  = regexp.MustCompile(`^\d+(ms|s|m)(\d+s)?$`)
)

// text normalizes what stands in strings.
func (n *normalizer) text(s string) string {
	s = typedErrors.ReplaceAllString(s, "${1}ERRORS")
	s = strings.ReplaceAll(s, n.ns, "NS")
	s = uidPattern.ReplaceAllStringFunc(s, func(uid string) string { return n.named("uid", uid) })
	s = generated.ReplaceAllStringFunc(s, func(name string) string { return n.named("generated", name) })
	s = addressPattern.ReplaceAllStringFunc(s, func(ip string) string {
		if ip == "10.96.0.0" { // what a dry run shows, and the name of the network
			return ip
		}
		return "IP"
	})
	s = timePattern.ReplaceAllString(s, "TIME")
	s = quotedFields.ReplaceAllString(s, "managedFields,name:")
	s = revisionPattern.ReplaceAllStringFunc(s, func(m string) string {
		i := strings.LastIndexAny(m, ` "(:`) + 1
		return m[:i] + n.named("rv", m[i:])
	})
	return portPattern.ReplaceAllString(s, "${1}PORT${2}")
}

// document normalizes JSON and returns it indented; what is no JSON, as text.
func (n *normalizer) document(raw []byte) string {
	var v any
	if err := numbers(raw, &v); err != nil {
		return n.text(string(raw))
	}
	b, _ := json.MarshalIndent(n.value(v), "", " ") // came from JSON
	return string(b)
}

func (n *normalizer) value(v any) any {
	switch v := v.(type) {
	case string:
		return n.text(v)
	case []any:
		out := []any{}
		for _, e := range v {
			if !n.foreign(e) {
				out = append(out, n.value(e))
			}
		}
		return out
	case map[string]any:
		return n.object(v)
	}
	return v
}

func (n *normalizer) object(m map[string]any) map[string]any {
	_, list := m["items"]
	_, table := m["rows"]
	if meta, ok := m["metadata"].(map[string]any); ok {
		if list || table { // their revision is that of the whole server
			delete(meta, "resourceVersion")
		}
		n.metadata(meta)
	}
	if m["kind"] == "PartialObjectMetadataList" && m["items"] == nil {
		m["items"] = []any{} // null if none matched, even those that are left out here
	}
	if cells, ok := m["cells"].([]any); ok { // a table's row; the last one is often an age
		for i, c := range cells {
			if s, ok := c.(string); ok && agePattern.MatchString(s) {
				cells[i] = "AGE"
			}
		}
	}
	// With three watches or more, a real server's events show this field as it is stored, while
	// reads leave it out.
	if spec, ok := m["spec"].(map[string]any); ok && m["kind"] == "Service" && spec["type"] == "ExternalName" {
		delete(spec, "internalTrafficPolicy")
	}
	for _, key := range []string{"nodePort", "healthCheckNodePort"} {
		if port, ok := m[key].(json.Number); ok && len(port) == len("30000") {
			m[key] = "PORT"
		}
	}
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out[n.text(key)] = n.value(m[key])
	}
	n.sort(out)
	return out
}

// sort sorts what a server sorts by times that have seconds, by UIDs, or not at all: entries of
// managed fields, and causes of an error.
func (n *normalizer) sort(m map[string]any) {
	for _, key := range []string{"managedFields", "causes"} {
		if list, ok := m[key].([]any); ok {
			slices.SortFunc(list, func(a, b any) int { return bytes.Compare(encode(a), encode(b)) })
		}
	}
	s, ok := m["message"].(string)
	if !ok || m["kind"] != "Status" {
		return
	}
	if subject, list, ok := strings.Cut(s, ": ["); ok && strings.HasSuffix(s, "]") {
		parts := strings.Split(strings.TrimSuffix(list, "]"), ", ")
		slices.Sort(parts)
		s = subject + ": [" + strings.Join(parts, ", ") + "]"
	}
	parts := strings.Split(s, "\n")
	slices.Sort(parts)
	m["message"] = strings.Join(parts, "\n")
}

func (n *normalizer) metadata(m map[string]any) {
	for _, key := range []string{"creationTimestamp", "deletionTimestamp"} {
		if s, ok := m[key].(string); ok && s != "" {
			m[key] = "TIME"
		}
	}
	if s, ok := m["resourceVersion"].(string); ok && s != "" {
		m["resourceVersion"] = n.named("rv", s)
	}
	if s, ok := m["continue"].(string); ok && s != "" {
		m["continue"] = "MORE"
	}
	delete(m, "remainingItemCount") // counts those of others
	entries, ok := m["managedFields"].([]any)
	if !ok {
		return
	}
	for _, e := range entries {
		if e, ok := e.(map[string]any); ok {
			delete(e, "time")
			if e["manager"] == "kube-controller-manager" || e["manager"] == "devcluster" {
				e["manager"] = "COLLECTOR" // by the program that it runs in
			}
		}
	}
}

// foreign reports whether an item of a list or a row of a table belongs to somebody else: the
// objects that a cluster puts into each namespace, and cluster-scoped ones of other sequences.
func (n *normalizer) foreign(item any) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	if row, ok := m["object"].(map[string]any); ok {
		m = row
	}
	meta, ok := m["metadata"].(map[string]any)
	if !ok {
		return false
	}
	name, _ := meta["name"].(string)
	_, namespaced := meta["namespace"]
	switch {
	case name == "default", name == "kube-root-ca.crt":
		return true
	case meta["uid"] == nil || namespaced:
		return false
	}
	return !strings.HasPrefix(name, n.ns+"-")
}

// numbers decodes JSON with numbers as they are written.
func numbers(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}
