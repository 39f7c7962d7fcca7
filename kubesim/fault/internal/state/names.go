package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// names are what replaces strings that a server or an external API chose.
type names struct {
	// live are the living objects by UID; kin names one of them by the first eight characters
	// of its UID, which it has in common with earlier incarnations.
	live, kin map[string]string
	// ids are the external API's names of resources.
	ids map[string]string
	// chosen are names from generateName and of resources, the longest first.
	chosen []pair
}

type pair struct{ from, to string }

// The simulated server makes UIDs with this in their middle.
const simulated = "-0000-4000-8000-"

// uidOfGone is what such a UID becomes if no object has it.
const uidOfGone = "uid(gone)"

const uidLen = 36

func newNames(objects []Object) *names {
	n := &names{live: make(map[string]string, len(objects)), kin: make(map[string]string, len(objects)), ids: map[string]string{}}
	for _, x := range objects {
		uid := string(x.Object.GetUID())
		if len(uid) != uidLen {
			continue
		}
		key := Key(x.Group, x.Resource, x.Object.GetNamespace(), x.Object.GetName())
		n.live[uid] = "uid(" + key + ")"
		n.kin[uid[:8]] = "uid(" + key + ", an earlier one)"
	}
	return n
}

func (n *names) key(x Object) string {
	return n.text(Key(x.Group, x.Resource, x.Object.GetNamespace(), x.Object.GetName()))
}

// nameGenerated gives names to the objects whose names the server or the operator made up: the same ones for
// objects with the same content.
func (n *names) nameGenerated(objects []Object, o Options) {
	groups := map[string][]Object{}
	for _, x := range objects {
		n.chosen = append(n.chosen, revisionsOf(x)...)
		if to, ok := chosen(x, o); ok {
			key := Key(x.Group, x.Resource, x.Object.GetNamespace(), to)
			groups[key] = append(groups[key], x)
			n.chosen = append(n.chosen, pair{x.Object.GetName(), to})
			if ip := addressOf(x); ip != "" {
				n.chosen = append(n.chosen, pair{ip, "address(" + to + ")"})
			}
		}
	}
	if len(n.chosen) == 0 {
		return
	}
	n.rename()
	numbered := map[string]string{}
	for _, group := range groups {
		if len(group) == 1 {
			continue
		}
		slices.SortFunc(group, func(a, b Object) int {
			return cmp.Or(cmp.Compare(n.yaml(a, o), n.yaml(b, o)), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
		})
		for i, x := range group {
			to, _ := chosen(x, o)
			to = fmt.Sprintf("%s%d", to, i+1)
			numbered[x.Object.GetName()], numbered[addressOf(x)] = to, "address("+to+")"
		}
	}
	for i, p := range n.chosen {
		if to, ok := numbered[p.from]; ok {
			n.chosen[i].to = to
		}
	}
}

// addressOf is the address of a Pod; empty if it has none. A Pod with another name has another one.
func addressOf(x Object) string {
	if x.Resource != "pods" || x.Group != "" {
		return ""
	}
	ip, _, _ := unstructured.NestedString(x.Object.Object, "status", "podIP")
	return ip
}

// revisionsOf names the revisions of a StatefulSet. Their names are hashes of its template, with whatever times and random
// values that has, and stand in the labels of its Pods.
func revisionsOf(x Object) (all []pair) {
	if x.Resource != "statefulsets" || x.Group != "apps" {
		return nil
	}
	status, _, _ := unstructured.NestedMap(x.Object.Object, "status")
	update, _ := status["updateRevision"].(string)
	current, _ := status["currentRevision"].(string)
	if update != "" {
		all = append(all, pair{update, "revision(" + x.Object.GetName() + ")"})
	}
	if current != "" && current != update {
		all = append(all, pair{current, "revision(" + x.Object.GetName() + ", the one before)"})
	}
	return all
}

// rename brings what objects are called into line with the names chosen so far.
func (n *names) rename() {
	slices.SortFunc(n.chosen, func(a, b pair) int {
		return cmp.Or(cmp.Compare(len(b.from), len(a.from)), cmp.Compare(a.from, b.from))
	})
	for _, m := range []map[string]string{n.live, n.kin} {
		for uid, name := range m {
			m[uid] = n.replace(name)
		}
	}
}

// nameResources names the resources that an operator made, if the external API seems to have numbered them,
// after their owners.
func (n *names) nameResources(objects []Object, things []history.Resource) {
	named := map[string]bool{}
	for _, x := range objects {
		named[x.Object.GetName()] = true
	}
	type family struct{ kind, owner string }
	families := map[family][]history.Resource{}
	for _, t := range things {
		numbered := len(t.ID) > 2 && strings.ContainsAny(t.ID, "0123456789")
		if t.Owner != "" && numbered && !named[t.ID] {
			f := family{t.Kind, n.text(t.Owner)}
			families[f] = append(families[f], t)
		}
	}
	if len(families) == 0 {
		return
	}
	for f, members := range families {
		slices.SortStableFunc(members, func(a, b history.Resource) int { return cmp.Compare(n.text(a.State), n.text(b.State)) })
		owner := strings.TrimSuffix(strings.TrimPrefix(f.owner, "uid("), ")")
		for i, t := range members {
			id := fmt.Sprintf("id(%s of %s)", f.kind, owner)
			if len(members) > 1 {
				id = fmt.Sprintf("id(%s %d of %s)", f.kind, i+1, owner)
			}
			n.ids[t.ID] = id
			n.chosen = append(n.chosen, pair{t.ID, id})
		}
	}
	slices.SortStableFunc(n.chosen, func(a, b pair) int {
		return cmp.Or(cmp.Compare(len(b.from), len(a.from)), cmp.Compare(a.from, b.from))
	})
}

// text returns s without what differs from run to run.
func (n *names) text(s string) string {
	if len(s) >= len("2000-01-01T00:00:00Z") {
		s = withoutTimes(s)
	}
	if len(s) >= uidLen {
		s = n.withoutUIDs(s)
	}
	return n.replace(withoutAdmission(s))
}

// admitted is what the API server's own admission puts before five random letters: the name of the volume
// with the token of a Pod's ServiceAccount.
const admitted = "kube-api-access-"

// withoutAdmission leaves the random letters out.
func withoutAdmission(s string) string {
	before, after, ok := strings.Cut(s, admitted)
	if !ok || len(after) < 5 {
		return s
	}
	return before + admitted + "*" + withoutAdmission(after[5:])
}

// withoutUIDs names the objects that s has the UIDs of.
func (n *names) withoutUIDs(s string) string {
	for i := 8; i+uidLen-8 <= len(s); i++ {
		if s[i] != '-' || s[i+5] != '-' || s[i+10] != '-' || s[i+15] != '-' {
			continue
		}
		uid := s[i-8 : i+uidLen-8]
		name, ok := n.live[uid]
		if !ok && strings.HasPrefix(s[i:], simulated) {
			if name, ok = n.kin[uid[:8]]; !ok {
				name, ok = uidOfGone, true
			}
		}
		if ok {
			return s[:i-8] + name + n.withoutUIDs(s[i+uidLen-8:])
		}
	}
	return s
}

// replace puts the chosen names into s, where they stand as words of their own.
func (n *names) replace(s string) string {
	for _, p := range n.chosen {
		for from := 0; len(s)-from >= len(p.from); {
			i := strings.Index(s[from:], p.from)
			if i < 0 {
				break
			}
			i += from
			end := i + len(p.from)
			if i > 0 && inName(s[i-1]) || end < len(s) && inName(s[end]) {
				from = i + 1
				continue
			}
			s = s[:i] + p.to + s[end:]
			from = i + len(p.to)
		}
	}
	return s
}

func inName(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// withoutTimes replaces each time in RFC 3339 form by T.
func withoutTimes(s string) string {
	for i := 10; i+10 <= len(s); i++ {
		if s[i] != 'T' || !like(s[i-10:i], "0000-00-00") || !like(s[i+1:i+9], "00:00:00") {
			continue
		}
		end := i + 9
		if s[end] == '.' {
			for end++; end < len(s) && '0' <= s[end] && s[end] <= '9'; end++ {
			}
		}
		switch {
		case end < len(s) && s[end] == 'Z':
			end++
		case end+6 <= len(s) && (like(s[end:end+6], "+00:00") || like(s[end:end+6], "-00:00")):
			end += 6
		default:
			continue
		}
		return s[:i-10] + "T" + withoutTimes(s[end:])
	}
	return s
}

// like reports whether s has digits where form has zeros and is form elsewhere.
func like(s, form string) bool {
	for i := range len(form) {
		if form[i] == '0' && '0' <= s[i] && s[i] <= '9' || form[i] != '0' && s[i] == form[i] {
			continue
		}
		return false
	}
	return true
}
