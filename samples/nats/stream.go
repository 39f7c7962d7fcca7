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
func (Streams) Observe(ctx context.Context, r external.ObserveRequest[*v1alpha1.Stream, *Client]) (external.Observation[*LiveStream], error) {
	return observeStream(ctx, r.Client, r.ID)
}

// Compare goes through the table.
func (Streams) Compare(r external.CompareRequest[*v1alpha1.Stream, *LiveStream]) external.Changes {
	cfg := r.Have.Config
	return differences(streamTable(r.Object.Spec, &cfg), r.Object.Spec.Recreate)
}

// Create asks for a new stream. NATS creates none as sealed; that follows as an update.
func (Streams) Create(ctx context.Context, r external.CreateRequest[*v1alpha1.Stream, *Client]) (external.CreateResponse[*LiveStream], error) {
	cfg := jetstream.StreamConfig{Name: r.ID}
	applyAll(streamTable(r.Object.Spec, &cfg))
	cfg.Sealed = false
	cfg.Metadata = r.Mark.On(cfg.Metadata)
	return external.CreateResponse[*LiveStream]{}, createStream(ctx, r.Client, cfg)
}

// Update sends the configuration that is there with the spec's settings over it.
func (Streams) Update(ctx context.Context, r external.UpdateRequest[*v1alpha1.Stream, *Client, *LiveStream]) (external.UpdateResponse[*LiveStream], error) {
	cfg := r.Have.Config
	applyAll(streamTable(r.Object.Spec, &cfg))
	return external.UpdateResponse[*LiveStream]{}, updateStream(ctx, r.Client, r.Have, cfg)
}

// Delete removes the stream with all its messages and consumers.
func (Streams) Delete(ctx context.Context, r external.DeleteRequest[*v1alpha1.Stream, *Client]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, deleteStream(ctx, r.Client, r.ID)
}

// Mark puts the ownership mark on a stream that was there before its object.
func (Streams) Mark(ctx context.Context, r external.MarkRequest[*v1alpha1.Stream, *Client]) (external.MarkResponse, error) {
	return external.MarkResponse{}, markStream(ctx, r.Client, r.ID, r.Mark)
}

// Unmark takes the ownership mark off a stream that is to stay.
func (Streams) Unmark(ctx context.Context, r external.UnmarkRequest[*v1alpha1.Stream, *Client]) (external.UnmarkResponse, error) {
	return external.UnmarkResponse{}, unmarkStream(ctx, r.Client, r.ID)
}

// Classify tells what NATS's errors mean.
func (Streams) Classify(err error) external.Class { return classify(err) }

// Reflect shows what a stream is; how full it is changes too often to be written here.
func (Streams) Reflect(r external.ReflectRequest[*v1alpha1.Stream, *LiveStream]) {
	status, have := &r.Object.Status, r.Have
	status.Name = have.Config.Name
	status.Subjects = strings.Join(have.Config.Subjects, ", ")
	status.Storage = string(wordFor(storages, have.Config.Storage))
	status.Retention = wordFor(retentions, have.Config.Retention)
	status.Replicas = have.Config.Replicas
	status.Created = new(metav1.NewTime(have.Created).Rfc3339Copy())
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
