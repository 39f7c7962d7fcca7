package natsfake

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func (s *Server) createStream(name string, body []byte) (answer, *refusal) {
	var cfg jetstream.StreamConfig
	if err := json.Unmarshal(body, &cfg); err != nil {
		return nil, badRequest
	}
	cfg.Metadata = stored(cfg.Metadata, streamLevel(cfg))
	switch {
	case cfg.Name != name:
		return nil, streamMismatch
	case cfg.Sealed:
		return nil, invalidStream("stream configuration for create can not be sealed")
	case cfg.MirrorDirect && cfg.Mirror == nil:
		return nil, invalidStream("stream has no mirror but does have mirror direct")
	}
	cfg, refused := checkStream(cfg)
	if refused != nil {
		return nil, refused
	}
	if cfg.Replicas > 1 {
		return nil, replicasAlone
	}
	if old, exists := s.streams[name]; exists {
		if text(old.config) != text(cfg) {
			return nil, streamNameInUse
		}
		return old.info(), nil
	}
	if s.overlaps(name, cfg.Subjects) {
		return nil, subjectsOverlap
	}
	made := &stream{config: cfg, created: time.Now().UTC(), consumers: map[string]*consumer{}}
	s.streams[name] = made
	return made.info(), nil
}

func (s *Server) updateStream(name string, body []byte) (answer, *refusal) {
	var cfg jetstream.StreamConfig
	if err := json.Unmarshal(body, &cfg); err != nil {
		return nil, badRequest
	}
	cfg, refused := checkStream(cfg)
	if refused != nil {
		return nil, refused
	}
	if cfg.Name != name {
		return nil, streamMismatch
	}
	old, exists := s.streams[name]
	if !exists {
		return nil, streamNotFound
	}
	if refused := changes(old.config, cfg); refused != nil {
		return nil, refused
	}
	if cfg.Sealed {
		cfg.MaxAge, cfg.Discard, cfg.AllowRollup = 0, jetstream.DiscardNew, false
		cfg.DenyDelete, cfg.DenyPurge = true, true
	}
	if s.overlaps(name, cfg.Subjects) {
		return nil, subjectsOverlap
	}
	cfg.Metadata = stored(cfg.Metadata, streamLevel(cfg))
	old.config = cfg
	return old.info(), nil
}

func (s *Server) streamInfo(name string) (answer, *refusal) {
	st, exists := s.streams[name]
	if !exists || time.Since(st.created) < s.late {
		return nil, streamNotFound
	}
	out := st.info()
	s.origins(st, out)
	return out, nil
}

// copies is what the server tells of a stream that another copies.
type copies struct {
	Name   string        `json:"name"`
	Active time.Duration `json:"active"`
	Error  *refusal      `json:"error,omitempty"`
}

// reachedAfter is when a server tells at the latest whether it can copy.
const reachedAfter = 200 * time.Millisecond

// origins adds to what is shown of a stream whether it can copy those that it is to copy.
func (s *Server) origins(st *stream, out answer) {
	seen := func(from *jetstream.StreamSource) copies {
		c := copies{Name: from.Name, Active: -1}
		_, exists := s.streams[from.Name]
		switch {
		case from.External != nil || time.Since(st.created) < reachedAfter:
		case exists:
			c.Active = time.Millisecond
		default:
			c.Error = streamNotFound
		}
		return c
	}
	if st.config.Mirror != nil {
		out["mirror"] = seen(st.config.Mirror)
	}
	var all []copies
	for _, from := range st.config.Sources {
		all = append(all, seen(from))
	}
	if all != nil {
		out["sources"] = all
	}
}

func (s *Server) deleteStream(name string) (answer, *refusal) {
	if _, exists := s.streams[name]; !exists {
		return nil, streamNotFound
	}
	delete(s.streams, name)
	delete(s.entrusted, name)
	return answer{"success": true}, nil
}

func (st *stream) info() answer {
	cfg := st.config
	cfg.Metadata = shown(cfg.Metadata)
	return answer{
		"config": cfg, "created": st.created, "ts": time.Now().UTC(),
		"state": map[string]any{"consumer_count": len(st.consumers)},
	}
}

// checkStream fills in what is left out, and refuses what cannot be.
func checkStream(cfg jetstream.StreamConfig) (jetstream.StreamConfig, *refusal) {
	if cfg.Name == "" || strings.ContainsAny(cfg.Name, " .*>\\/\t\r\n") {
		return cfg, invalidStream(`stream name is required and can not contain '.', '*', '>', '\', '/'`)
	}
	cfg.Replicas = max(cfg.Replicas, 1)
	cfg.MaxMsgs, cfg.MaxBytes = unlimited(cfg.MaxMsgs), unlimited(cfg.MaxBytes)
	cfg.MaxMsgsPerSubject, cfg.MaxMsgSize = unlimited(cfg.MaxMsgsPerSubject), unlimited(cfg.MaxMsgSize)
	cfg.MaxConsumers = unlimited(cfg.MaxConsumers)
	if cfg.MaxAge != 0 && cfg.MaxAge < 100*time.Millisecond {
		return cfg, invalidStream("max age needs to be >= 100ms")
	}
	if cfg.Duplicates == 0 && cfg.Mirror == nil && len(cfg.Sources) == 0 {
		cfg.Duplicates = 2 * time.Minute
		if cfg.MaxAge != 0 {
			cfg.Duplicates = min(cfg.Duplicates, cfg.MaxAge)
		}
	}
	switch {
	case cfg.MaxAge != 0 && cfg.Duplicates > cfg.MaxAge:
		return cfg, invalidStream("duplicates window can not be larger then max age")
	case cfg.DenyPurge && cfg.AllowRollup:
		return cfg, invalidStream("roll-ups require the purge permission")
	case cfg.DiscardNewPerSubject && cfg.Discard != jetstream.DiscardNew:
		return cfg, invalidStream("discard new per subject requires discard new policy to be set")
	case cfg.DiscardNewPerSubject && cfg.MaxMsgsPerSubject <= 0:
		return cfg, invalidStream("discard new per subject requires max msgs per subject > 0")
	}
	if cfg.SubjectDeleteMarkerTTL > 0 {
		cfg.AllowMsgTTL, cfg.AllowRollup, cfg.DenyPurge = true, true, false
	}
	if len(cfg.Subjects) == 0 && cfg.Mirror == nil && len(cfg.Sources) == 0 {
		cfg.Subjects = []string{cfg.Name}
	}
	return cfg, checkSubjects(cfg.Subjects, cfg.NoAck)
}

// checkSubjects refuses subjects of one stream that stand in each other's way, or in the
// server's own.
func checkSubjects(subjects []string, noAck bool) *refusal {
	for i, a := range subjects {
		if !validSubject(a) {
			return invalidStream("invalid subject")
		}
		if slices.Contains(subjects[:i], a) {
			return invalidStream("duplicate subjects detected")
		}
		if !noAck && collide(a, "$JS.>") {
			return invalidStream("subjects that overlap with jetstream api require no-ack to be true")
		}
		for _, b := range subjects[i+1:] {
			if collide(a, b) {
				return invalidStream(`subject "` + a + `" overlaps with "` + b + `"`)
			}
		}
	}
	return nil
}

// changes refuses those that a living stream does not take.
func changes(old, next jetstream.StreamConfig) *refusal {
	workQueue := jetstream.WorkQueuePolicy
	switch {
	case next.Replicas > 1:
		return replicasAlone
	case next.Storage != old.Storage:
		return invalidStream("stream configuration update can not change storage type")
	case next.Retention != old.Retention && (old.Retention == workQueue || next.Retention == workQueue):
		return invalidStream("stream configuration update can not change retention policy to/from workqueue")
	case !next.Sealed && old.Sealed:
		return invalidStream("stream configuration update can not unseal a sealed stream")
	case !next.DenyDelete && old.DenyDelete:
		return invalidStream("stream configuration update can not cancel deny message deletes")
	case !next.DenyPurge && old.DenyPurge:
		return invalidStream("stream configuration update can not cancel deny purge")
	case old.AllowMsgTTL && !next.AllowMsgTTL:
		return invalidStream("message TTL status can not be disabled")
	}
	return nil
}

// overlaps tells whether another stream has one of the subjects.
func (s *Server) overlaps(name string, subjects []string) bool {
	for other, st := range s.streams {
		if other == name {
			continue
		}
		for _, a := range st.config.Subjects {
			if slices.ContainsFunc(subjects, func(b string) bool { return collide(a, b) }) {
				return true
			}
		}
	}
	return false
}

// collide tells whether a message can have a subject that both patterns match.
func collide(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		switch {
		case as[i] == ">" || bs[i] == ">":
			return true
		case as[i] != "*" && bs[i] != "*" && as[i] != bs[i]:
			return false
		}
	}
	return len(as) == len(bs)
}

func validSubject(s string) bool {
	tokens := strings.Split(s, ".")
	for i, t := range tokens {
		if t == "" || strings.ContainsAny(t, " \t\r\n\f") || t == ">" && i < len(tokens)-1 {
			return false
		}
	}
	return true
}

// unlimited is what the server makes of a limit that is none.
func unlimited[N int | int32 | int64](n N) N {
	if n == 0 || n < -1 {
		return -1
	}
	return n
}

// serverKeys is the beginning of the metadata keys that the server writes.
const serverKeys = "_nats."

// stored is the metadata that the server keeps: with the level that the settings need.
func stored(metadata map[string]string, level string) map[string]string {
	out := maps.Clone(metadata)
	if out == nil {
		out = map[string]string{}
	}
	delete(out, serverKeys+"ver")
	delete(out, serverKeys+"level")
	out[serverKeys+"req.level"] = level
	return out
}

// shown is the metadata that the server answers.
func shown(metadata map[string]string) map[string]string {
	out := maps.Clone(metadata)
	out[serverKeys+"ver"], out[serverKeys+"level"] = Version, apiLevel
	return out
}

const (
	// Version is the server's whose answers are given here.
	Version  = "2.15.2"
	apiLevel = "5"
)

// streamLevel is the lowest level of the API that has the settings.
func streamLevel(cfg jetstream.StreamConfig) string {
	if cfg.AllowMsgTTL || cfg.SubjectDeleteMarkerTTL > 0 {
		return "1"
	}
	return "0"
}
