package nats

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// setting is one line of a kind's table: a field of the spec and the corresponding field of the
// configuration. The differences, the next configuration and the first configuration are all derived
// from the table.
type setting struct {
	differs external.Changes
	apply   func()
}

// effect returns what a change of a setting from have to want requires.
type effect[V any] func(have, want V) external.Effect

// inPlace: NATS can change the setting.
func inPlace[V any](_, _ V) external.Effect { return external.InPlace }

// fixed: NATS cannot change the setting, so a change requires re-creation.
func fixed[V any](_, _ V) external.Effect { return external.Recreate }

// oneWay: NATS can turn the setting on, but not off again.
func oneWay(have, _ bool) external.Effect {
	if have {
		return external.Recreate
	}
	return external.InPlace
}

// plain is a setting with the same value in the spec and in NATS. If want is nil, it is not managed.
func plain[V comparable](path string, want, have *V, e effect[V]) setting {
	return compared(path, want, have, func(a, b V) bool { return a == b }, e)
}

// stated is a setting that is a text. An empty text is not managed, because templates write it if no
// value was given.
func stated(want *string) *string {
	if want == nil || *want == "" {
		return nil
	}
	return want
}

// limit is a setting that is a number, for which NATS replaces 0 with -1 (no limit).
func limit[V int | int32 | int64](path string, want, have *V, e effect[V]) setting {
	if want != nil && *want == 0 {
		want = new(V(-1))
	}
	return plain(path, want, have, e)
}

// length is a setting that is a duration.
func length(path string, want *v1alpha1.Duration, have *time.Duration, e effect[time.Duration]) setting {
	if want == nil {
		return setting{}
	}
	return plain(path, &want.Duration.Duration, have, e)
}

// unless is a setting that does not differ if the spec has the empty value and NATS has replaced it with
// its default.
func unless(made bool, s setting) setting {
	if made {
		s.differs = nil
	}
	return s
}

// none reports whether the spec has a duration of zero, which NATS replaces with its default.
func none(d *v1alpha1.Duration) bool { return d != nil && d.Duration.Duration == 0 }

// number is a setting that is an unsigned number in NATS.
func number(path string, want *int64, have *uint64, e effect[uint64]) setting {
	if want == nil {
		return setting{}
	}
	return plain(path, new(uint64(*want)), have, e)
}

// choice is a setting whose values have different names in the spec and in NATS.
func choice[W ~string, V comparable](path string, want *W, have *V, words map[W]V, e effect[V]) setting {
	if want == nil {
		return setting{}
	}
	s := plain(path, new(words[*want]), have, e)
	for i := range s.differs {
		s.differs[i].Want, s.differs[i].Have = *want, wordFor(words, *have)
	}
	return s
}

// wordFor returns the name of a value; the first one, if there are several, so that it is always the same.
func wordFor[W ~string, V comparable](words map[W]V, value V) W {
	for _, w := range slices.Sorted(maps.Keys(words)) {
		if words[w] == value {
			return w
		}
	}
	return "unknown"
}

// unordered is a setting that is a list without a meaningful order. If want is nil, it is not managed.
func unordered(path string, want []string, have *[]string) setting {
	if want == nil {
		return setting{}
	}
	return setting{
		differs: external.Set(path, want, *have),
		apply:   func() { *have = slices.Clone(want) },
	}
}

// whole is a setting that is a struct, compared in the form in which NATS sends it. If want is nil, it is
// not managed.
func whole[V any](path string, want, have *V, e effect[V]) setting {
	same := func(a, b V) bool { return text(a) == text(b) }
	s := compared(path, want, have, same, e)
	for i := range s.differs {
		s.differs[i].Want, s.differs[i].Have = json.RawMessage(text(*want)), json.RawMessage(text(*have))
	}
	return s
}

func compared[V any](path string, want, have *V, same func(a, b V) bool, e effect[V]) setting {
	if want == nil {
		return setting{}
	}
	s := setting{apply: func() { *have = *want }}
	if !same(*want, *have) {
		s.differs = external.Changes{{Path: path, Want: *want, Have: *have, Effect: e(*have, *want)}}
	}
	return s
}

// natsKeys is the prefix of the metadata keys that NATS writes.
const natsKeys = "_nats."

// metadata is the setting for the user's metadata. The keys of NATS and the ownership mark are kept.
func metadata(path string, want map[string]string, have *map[string]string) setting {
	if want == nil {
		return setting{}
	}
	theirs := external.Unmark(*have)
	maps.DeleteFunc(theirs, func(k, _ string) bool { return strings.HasPrefix(k, natsKeys) })
	return setting{
		differs: external.Field(path, want, theirs),
		apply: func() {
			next := maps.Clone(*have)
			maps.DeleteFunc(next, func(k, _ string) bool { _, user := theirs[k]; return user })
			if next == nil {
				next = map[string]string{}
			}
			maps.Copy(next, want)
			*have = next
		},
	}
}

// differences returns the differences of a table. A change that requires re-creation is impossible unless
// the spec allows re-creation.
func differences(table []setting, recreate v1alpha1.RecreatePolicy) external.Changes {
	var parts []external.Changes
	for _, s := range table {
		parts = append(parts, s.differs)
	}
	all := external.Diff(parts...)
	for i := range all {
		if all[i].Effect == external.Recreate && recreate != v1alpha1.RecreateAllowed {
			all[i].Effect = external.Unsupported
			all[i].Remedy = "set spec.recreate to Allowed to delete it, with everything in it, and create it again"
		}
	}
	return all
}

// applyAll sets the configuration of a table to the values of the spec.
func applyAll(table []setting) {
	for _, s := range table {
		if s.apply != nil {
			s.apply()
		}
	}
}

// text returns a value in the form in which NATS sends it.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error() // cannot happen for the types of NATS; differs from every value
	}
	return string(b)
}

// patched returns the configuration that the server reported, changed only where before and after
// differ. Settings that this operator does not know are kept.
func patched(reported json.RawMessage, before, after any) (json.RawMessage, error) {
	var all, old, next map[string]json.RawMessage
	for _, x := range []struct {
		from any
		to   *map[string]json.RawMessage
	}{{reported, &all}, {before, &old}, {after, &next}} {
		b, err := json.Marshal(x.from)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(b, x.to); err != nil {
			return nil, err
		}
	}
	for key := range old {
		if _, kept := next[key]; !kept {
			delete(all, key)
		}
	}
	for key, value := range next {
		if string(old[key]) != string(value) {
			all[key] = value
		}
	}
	return json.Marshal(all)
}

// source converts a stream to copy from into the type of NATS.
func source(s v1alpha1.StreamSource) jetstream.StreamSource {
	out := jetstream.StreamSource{Name: s.Name, FilterSubject: s.FilterSubject}
	if s.OptStartSeq != nil {
		out.OptStartSeq = uint64(*s.OptStartSeq)
	}
	if s.OptStartTime != nil {
		out.OptStartTime = new(s.OptStartTime.UTC())
	}
	for _, t := range s.SubjectTransforms {
		out.SubjectTransforms = append(out.SubjectTransforms, jetstream.SubjectTransformConfig{Source: t.Source, Destination: t.Dest})
	}
	if s.ExternalAPIPrefix != "" {
		out.External = &jetstream.ExternalStream{APIPrefix: s.ExternalAPIPrefix, DeliverPrefix: s.ExternalDeliverPrefix}
	}
	if s.Consumer != nil {
		out.Consumer = &jetstream.StreamConsumerSource{Name: s.Consumer.Name, DeliverSubject: s.Consumer.DeliverSubject}
	}
	return out
}
