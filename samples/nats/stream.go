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

// LiveStream is a stream as reported by NATS.
type LiveStream struct {
	jetstream.StreamInfo
	// Reported is the raw configuration, including settings that this operator does not know.
	Reported json.RawMessage
}

// UnmarshalJSON decodes the answer of the server.
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

// ExternalName returns spec.name, or else the name of the object.
func (Streams) ExternalName(s *v1alpha1.Stream) (string, error) {
	return firstOf(s.Spec.Name, s.Name), nil
}

// Observe reads the stream.
func (Streams) Observe(ctx context.Context, r external.ObserveRequest[*v1alpha1.Stream, *Client]) (external.Observation[*LiveStream], error) {
	return observeStream(ctx, r.Client, r.ID)
}

// Compare compares the settings in the table.
func (Streams) Compare(r external.CompareRequest[*v1alpha1.Stream, *LiveStream]) external.Changes {
	cfg := r.Have.Config
	return differences(streamTable(r.Object.Spec, &cfg), r.Object.Spec.Recreate)
}

// Create creates a stream. NATS cannot create a sealed stream; an update seals it.
func (Streams) Create(ctx context.Context, r external.CreateRequest[*v1alpha1.Stream, *Client]) (external.CreateResponse[*LiveStream], error) {
	cfg := jetstream.StreamConfig{Name: r.ID}
	applyAll(streamTable(r.Object.Spec, &cfg))
	cfg.Sealed = false
	cfg.Metadata = r.Mark.On(cfg.Metadata)
	return external.CreateResponse[*LiveStream]{}, createStream(ctx, r.Client, cfg)
}

// Update sends the present configuration with the settings of the spec.
func (Streams) Update(ctx context.Context, r external.UpdateRequest[*v1alpha1.Stream, *Client, *LiveStream]) (external.UpdateResponse[*LiveStream], error) {
	cfg := r.Have.Config
	applyAll(streamTable(r.Object.Spec, &cfg))
	return external.UpdateResponse[*LiveStream]{}, updateStream(ctx, r.Client, r.Have, cfg)
}

// Delete deletes the stream with all its messages and consumers.
func (Streams) Delete(ctx context.Context, r external.DeleteRequest[*v1alpha1.Stream, *Client]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, deleteStream(ctx, r.Client, r.ID)
}

// Mark adds the ownership mark to a stream that existed before its object.
func (Streams) Mark(ctx context.Context, r external.MarkRequest[*v1alpha1.Stream, *Client]) (external.MarkResponse, error) {
	return external.MarkResponse{}, markStream(ctx, r.Client, r.ID, r.Mark)
}

// Unmark removes the ownership mark from a stream that is kept.
func (Streams) Unmark(ctx context.Context, r external.UnmarkRequest[*v1alpha1.Stream, *Client]) (external.UnmarkResponse, error) {
	return external.UnmarkResponse{}, unmarkStream(ctx, r.Client, r.ID)
}

// Classify returns the meaning of an error from NATS.
func (Streams) Classify(err error) external.Class { return classify(err) }

// Reflect shows settings of the stream. Its size changes too often to be shown in status.
func (Streams) Reflect(r external.ReflectRequest[*v1alpha1.Stream, *LiveStream]) {
	status, have := &r.Object.Status, r.Have
	status.Name = have.Config.Name
	status.Subjects = strings.Join(have.Config.Subjects, ", ")
	status.Storage = string(wordFor(storages, have.Config.Storage))
	status.Retention = wordFor(retentions, have.Config.Retention)
	status.Replicas = have.Config.Replicas
	status.Created = new(metav1.NewTime(have.Created).Rfc3339Copy())
}

// The requests below are for both streams and buckets. Errors name neither the operation nor the
// resource, because the engine adds them.

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

// readStream returns nil if the stream does not exist.
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

// errGone: the resource to mark has been deleted meanwhile.
var errGone = external.Transient(errors.New("it no longer exists"))

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
