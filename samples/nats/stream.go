package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// Streams is the driver of [v1alpha1.Stream].
type Streams struct{}

// LiveStream is a stream as NATS reports it.
type LiveStream struct {
	jetstream.StreamInfo
	// Reported is the configuration as it came, with what this operator does not know.
	Reported json.RawMessage
}

// UnmarshalJSON reads the server's answer.
func (l *LiveStream) UnmarshalJSON(b []byte) error {
	var raw struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	l.Reported = raw.Config
	return json.Unmarshal(b, &l.StreamInfo)
}

// ExternalName is spec.name, or the object's own name.
func (Streams) ExternalName(s *v1alpha1.Stream) (string, error) {
	return firstOf(s.Spec.Name, s.Name), nil
}

// Observe asks for the stream.
func (Streams) Observe(ctx context.Context, c *Client, _ *v1alpha1.Stream, ref external.Ref) (external.Observation[*LiveStream], error) {
	return observeStream(ctx, c, ref.ID)
}

// Compare goes through the table.
func (Streams) Compare(s *v1alpha1.Stream, have *LiveStream) external.Changes {
	cfg := have.Config
	return differences(streamTable(s.Spec, &cfg), s.Spec.Recreate)
}

// Create asks for a new stream. NATS creates none as sealed; that follows as an update.
func (Streams) Create(ctx context.Context, c *Client, s *v1alpha1.Stream, in external.CreateInput) (external.Result, error) {
	cfg := jetstream.StreamConfig{Name: in.Name}
	applyAll(streamTable(s.Spec, &cfg))
	cfg.Sealed = false
	cfg.Metadata = in.Mark.On(cfg.Metadata)
	return external.Result{}, createStream(ctx, c, cfg)
}

// Update sends the configuration that is there with the spec's settings over it.
func (Streams) Update(ctx context.Context, c *Client, s *v1alpha1.Stream, _ external.Ref, have *LiveStream, _ external.Changes) (external.Result, error) {
	cfg := have.Config
	applyAll(streamTable(s.Spec, &cfg))
	return external.Result{}, updateStream(ctx, c, have, cfg)
}

// Delete removes the stream with all its messages and consumers.
func (Streams) Delete(ctx context.Context, c *Client, _ *v1alpha1.Stream, ref external.Ref) (external.Result, error) {
	return external.Result{}, deleteStream(ctx, c, ref.ID)
}

// Mark puts the ownership mark on a stream that was there before its object.
func (Streams) Mark(ctx context.Context, c *Client, _ *v1alpha1.Stream, ref external.Ref, mark external.Mark) error {
	return markStream(ctx, c, ref.ID, mark)
}

// Unmark takes the ownership mark off a stream that is to stay.
func (Streams) Unmark(ctx context.Context, c *Client, _ *v1alpha1.Stream, ref external.Ref) error {
	return unmarkStream(ctx, c, ref.ID)
}

// Classify tells what NATS's errors mean.
func (Streams) Classify(err error) external.Class { return classify(err) }

// Reflect shows what a stream is; how full it is changes too often to be written here.
func (Streams) Reflect(s *v1alpha1.Stream, have *LiveStream) {
	s.Status.Name = have.Config.Name
	s.Status.Subjects = strings.Join(have.Config.Subjects, ", ")
	s.Status.Storage = string(wordFor(storages, have.Config.Storage))
	s.Status.Retention = wordFor(retentions, have.Config.Retention)
	s.Status.Replicas = have.Config.Replicas
	s.Status.Created = new(metav1.NewTime(have.Created).Rfc3339Copy())
}

// The requests below serve streams and buckets alike. Errors name neither what was tried nor
// on what: the engine does.

func observeStream(ctx context.Context, c *Client, name string) (external.Observation[*LiveStream], error) {
	have, err := settledStream(ctx, c, name)
	if err != nil {
		return external.Observation[*LiveStream]{}, err
	}
	if have == nil {
		return external.Missing[*LiveStream](), nil
	}
	return inUse(have, external.MarkOf(have.Config.Metadata)), nil
}

// readStream returns nil for a stream that does not exist.
func readStream(ctx context.Context, c *Client, name string) (*LiveStream, error) {
	have := &LiveStream{}
	err := c.read(ctx, "STREAM.INFO."+name, nil, have)
	switch {
	case isCode(err, codeStreamNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return have, nil
}

func createStream(ctx context.Context, c *Client, cfg jetstream.StreamConfig) error {
	return c.change(ctx, "STREAM.CREATE."+cfg.Name, cfg, &LiveStream{})
}

func updateStream(ctx context.Context, c *Client, have *LiveStream, cfg jetstream.StreamConfig) error {
	body, err := patched(have.Reported, have.Config, cfg)
	if err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	return c.change(ctx, "STREAM.UPDATE."+cfg.Name, body, &LiveStream{})
}

func deleteStream(ctx context.Context, c *Client, name string) error {
	err := c.change(ctx, "STREAM.DELETE."+name, nil, &struct{}{})
	if isCode(err, codeStreamNotFound) {
		return nil
	}
	return err
}

func markStream(ctx context.Context, c *Client, name string, mark external.Mark) error {
	have, err := readStream(ctx, c, name)
	switch {
	case err != nil:
		return err
	case have == nil:
		return errGone
	}
	cfg := have.Config
	cfg.Metadata = mark.On(external.Unmark(cfg.Metadata))
	return updateStream(ctx, c, have, cfg)
}

// errGone: what is to be marked went meanwhile.
var errGone = external.Transient(errors.New("it does not exist any more"))

func unmarkStream(ctx context.Context, c *Client, name string) error {
	have, err := readStream(ctx, c, name)
	if have == nil || err != nil || external.MarkOf(have.Config.Metadata) == nil {
		return err
	}
	cfg := have.Config
	cfg.Metadata = external.Unmark(cfg.Metadata)
	return updateStream(ctx, c, have, cfg)
}

func firstOf(names ...string) string {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}
