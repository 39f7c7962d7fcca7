package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// Consumers is the driver of [v1alpha1.Consumer]. The external name of a consumer is
// <stream>/<consumer>.
type Consumers struct{}

// LiveConsumer is a consumer as reported by NATS.
type LiveConsumer struct {
	jetstream.ConsumerInfo
	// Reported is the raw configuration, including settings that this operator does not know.
	Reported json.RawMessage
}

// UnmarshalJSON decodes the answer of the server.
func (l *LiveConsumer) UnmarshalJSON(b []byte) error {
	var raw struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	l.Reported = raw.Config
	return json.Unmarshal(b, &l.ConsumerInfo)
}

// ExternalName returns the names of the stream and the consumer. Each comes from the spec or is the name
// of the object.
func (Consumers) ExternalName(o *v1alpha1.Consumer) (string, error) {
	stream := o.Spec.Stream
	if stream == "" && o.Spec.StreamRef != nil {
		stream = o.Spec.StreamRef.Name
	}
	if stream == "" {
		return "", fmt.Errorf("consumer %q belongs to no stream; set spec.stream or spec.streamRef", o.Name)
	}
	return stream + "/" + firstOf(o.Spec.Name, o.Name), nil
}

// DependsOn returns the Stream object that streamRef names.
func (Consumers) DependsOn(o *v1alpha1.Consumer) []external.Dependency {
	stream := external.Dependency{Role: "stream", To: &v1alpha1.Stream{}}
	if r := o.Spec.StreamRef; r != nil {
		stream.Namespace, stream.Name = r.Namespace, r.Name
	} else if o.Spec.Stream != "" {
		return nil
	}
	return []external.Dependency{stream}
}

// Observe reads the consumer. If its stream does not exist, the consumer does not exist either.
func (Consumers) Observe(ctx context.Context, r external.ObserveRequest[*v1alpha1.Consumer, *Client]) (external.Observation[*LiveConsumer], error) {
	have, err := readConsumer(ctx, r.Client, r.ID)
	if err != nil {
		return external.Observation[*LiveConsumer]{}, err
	}
	if have == nil {
		return external.Missing[*LiveConsumer](), nil
	}
	seen := external.Available(have, external.MarkOf(have.Config.Metadata))
	if have.Paused {
		seen.External = "paused"
	}
	return seen, nil
}

// Compare compares the settings in the table.
func (Consumers) Compare(r external.CompareRequest[*v1alpha1.Consumer, *LiveConsumer]) external.Changes {
	cfg := r.Have.Config
	return differences(consumerTable(r.Object.Spec, &cfg, r.Have.TimeStamp), r.Object.Spec.Recreate)
}

// Create creates a durable consumer.
func (Consumers) Create(ctx context.Context, r external.CreateRequest[*v1alpha1.Consumer, *Client]) (external.CreateResponse[*LiveConsumer], error) {
	stream, name := split(r.ID)
	cfg := jetstream.ConsumerConfig{Name: name, Durable: name}
	applyAll(consumerTable(r.Object.Spec, &cfg, time.Time{}))
	cfg.Metadata = r.Mark.On(cfg.Metadata)
	body, err := json.Marshal(cfg)
	if err != nil {
		return external.CreateResponse[*LiveConsumer]{}, fmt.Errorf("encode the configuration: %w", err)
	}
	return external.CreateResponse[*LiveConsumer]{}, sendConsumer(ctx, r.Client, "create", stream, cfg, body)
}

// Update sends the present configuration with the settings of the spec. NATS
// has a separate request to pause and resume a consumer and ignores a pause in the configuration.
func (Consumers) Update(ctx context.Context, r external.UpdateRequest[*v1alpha1.Consumer, *Client, *LiveConsumer]) (external.UpdateResponse[*LiveConsumer], error) {
	cfg := r.Have.Config
	applyAll(consumerTable(r.Object.Spec, &cfg, r.Have.TimeStamp))
	if r.Changes.Has(pausePath) {
		if err := pauseConsumer(ctx, r.Client, r.Have, cfg.PauseUntil); err != nil {
			return external.UpdateResponse[*LiveConsumer]{}, err
		}
		if len(r.Changes.With(external.InPlace)) == 1 {
			return external.UpdateResponse[*LiveConsumer]{}, nil
		}
	}
	cfg.PauseUntil = r.Have.Config.PauseUntil
	return external.UpdateResponse[*LiveConsumer]{}, updateConsumer(ctx, r.Client, r.Have, cfg)
}

// Delete deletes the consumer, including its position in the stream.
func (Consumers) Delete(ctx context.Context, r external.DeleteRequest[*v1alpha1.Consumer, *Client]) (external.DeleteResponse, error) {
	stream, name := split(r.ID)
	err := r.Client.change(ctx, "CONSUMER.DELETE."+stream+"."+name, nil, &struct{}{})
	if isCode(err, codeConsumerNotFound, codeStreamNotFound) {
		err = nil
	}
	return external.DeleteResponse{}, err
}

// Mark adds the ownership mark to a consumer that existed before its object.
func (Consumers) Mark(ctx context.Context, r external.MarkRequest[*v1alpha1.Consumer, *Client]) (external.MarkResponse, error) {
	have, err := readConsumer(ctx, r.Client, r.ID)
	switch {
	case err != nil:
		return external.MarkResponse{}, err
	case have == nil:
		return external.MarkResponse{}, errGone
	}
	cfg := have.Config
	cfg.Metadata = r.Mark.On(external.Unmark(cfg.Metadata))
	return external.MarkResponse{}, updateConsumer(ctx, r.Client, have, cfg)
}

// Unmark removes the ownership mark from a consumer that is kept.
func (Consumers) Unmark(ctx context.Context, r external.UnmarkRequest[*v1alpha1.Consumer, *Client]) (external.UnmarkResponse, error) {
	have, err := readConsumer(ctx, r.Client, r.ID)
	if have == nil || err != nil || external.MarkOf(have.Config.Metadata) == nil {
		return external.UnmarkResponse{}, err
	}
	cfg := have.Config
	cfg.Metadata = external.Unmark(cfg.Metadata)
	return external.UnmarkResponse{}, updateConsumer(ctx, r.Client, have, cfg)
}

// Classify returns the meaning of an error from NATS.
func (Consumers) Classify(err error) external.Class { return classify(err) }

// Reflect shows settings of the consumer. Its position changes too often to be shown in status.
func (Consumers) Reflect(r external.ReflectRequest[*v1alpha1.Consumer, *LiveConsumer]) {
	status, have := &r.Object.Status, r.Have
	status.Stream = have.Stream
	status.Name = have.Name
	status.Mode = "pull"
	if have.Config.DeliverSubject != "" {
		status.Mode = "push"
	}
	status.AckPolicy = wordFor(ackPolicies, have.Config.AckPolicy)
	status.Created = new(metav1.NewTime(have.Created).Rfc3339Copy())
}

// readConsumer returns nil if the consumer does not exist.
func readConsumer(ctx context.Context, c *Client, id string) (*LiveConsumer, error) {
	stream, name := split(id)
	have := &LiveConsumer{}
	err := c.read(ctx, "CONSUMER.INFO."+stream+"."+name, nil, have)
	switch {
	case isCode(err, codeConsumerNotFound, codeStreamNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return have, nil
}

func updateConsumer(ctx context.Context, c *Client, have *LiveConsumer, cfg jetstream.ConsumerConfig) error {
	body, err := patched(have.Reported, have.Config, cfg)
	if err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	return sendConsumer(ctx, c, "update", have.Stream, cfg, body)
}

// pauseConsumer pauses a consumer, or resumes it if until is nil.
func pauseConsumer(ctx context.Context, c *Client, have *LiveConsumer, until *time.Time) error {
	request := struct {
		PauseUntil *time.Time `json:"pause_until,omitempty"`
	}{until}
	return c.change(ctx, "CONSUMER.PAUSE."+have.Stream+"."+have.Name, request, &struct{}{})
}

// sendConsumer creates or updates a consumer. NATS expects a single filter in the subject as well, so
// that permissions can depend on it.
func sendConsumer(ctx context.Context, c *Client, action, stream string, cfg jetstream.ConsumerConfig, body json.RawMessage) error {
	subject := "CONSUMER.CREATE." + stream + "." + cfg.Durable
	if cfg.FilterSubject != "" {
		subject += "." + cfg.FilterSubject
	}
	return c.change(ctx, subject, struct {
		Stream string          `json:"stream_name"`
		Config json.RawMessage `json:"config"`
		Action string          `json:"action"`
	}{stream, body, action}, &LiveConsumer{})
}

// split splits the external name of a consumer. Neither part can contain a slash.
func split(id string) (stream, consumer string) {
	stream, consumer, _ = strings.Cut(id, "/")
	return stream, consumer
}
