package natsfake

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// sendConsumer creates or updates a consumer, as the request's action says.
func (s *Server) sendConsumer(streamName, name, filter string, body []byte) (answer, *refusal) {
	var request struct {
		Stream string                   `json:"stream_name"`
		Config jetstream.ConsumerConfig `json:"config"`
		Action string                   `json:"action"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, badRequest
	}
	cfg := request.Config
	switch {
	case request.Stream != streamName:
		return nil, streamMismatch
	case cfg.Durable != name:
		return nil, durableMismatch
	case filter != "" && cfg.FilterSubject != filter:
		return nil, filterMismatch
	case cfg.Replicas > 1:
		return nil, replicasAlone
	}
	st, exists := s.streams[streamName]
	if !exists {
		return nil, streamNotFound
	}
	cfg.Name = name
	old, exists := st.consumers[name]
	if exists {
		cfg.PauseUntil = old.config.PauseUntil // a request of its own
	}
	cfg.Metadata = stored(cfg.Metadata, consumerLevel(cfg))
	if refused := checkConsumer(&cfg, st.config); refused != nil {
		return nil, refused
	}
	switch {
	case exists && request.Action == "create" && text(old.config) != text(cfg):
		return nil, consumerExists
	case exists:
		if refused := consumerChanges(old.config, cfg); refused != nil {
			return nil, refused
		}
		old.config = cfg
		return old.info(st), nil
	case request.Action == "update":
		return nil, consumerGone
	case st.config.MaxConsumers > 0 && len(st.consumers) >= st.config.MaxConsumers:
		return nil, tooManyConsumers
	}
	made := &consumer{config: cfg, created: time.Now().UTC()}
	st.consumers[name] = made
	return made.info(st), nil
}

func (s *Server) consumerInfo(streamName, name string) (answer, *refusal) {
	st, c, refused := s.consumer(streamName, name)
	if refused != nil {
		return nil, refused
	}
	return c.info(st), nil
}

func (s *Server) deleteConsumer(streamName, name string) (answer, *refusal) {
	st, _, refused := s.consumer(streamName, name)
	if refused != nil {
		return nil, refused
	}
	delete(st.consumers, name)
	return answer{"success": true}, nil
}

func (s *Server) pauseConsumer(streamName, name string, body []byte) (answer, *refusal) {
	var request struct {
		Until *time.Time `json:"pause_until"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, badRequest
		}
	}
	_, c, refused := s.consumer(streamName, name)
	if refused != nil {
		return nil, refused
	}
	cfg := c.config
	cfg.PauseUntil = nil
	out := answer{"paused": false, "pause_until": time.Time{}}
	if request.Until != nil && !request.Until.IsZero() {
		cfg.PauseUntil = new(request.Until.UTC())
		out = answer{"paused": time.Now().Before(*request.Until), "pause_until": cfg.PauseUntil}
	}
	cfg.Metadata = stored(cfg.Metadata, consumerLevel(cfg))
	c.config = cfg
	return out, nil
}

func (s *Server) consumer(streamName, name string) (*stream, *consumer, *refusal) {
	st, exists := s.streams[streamName]
	if !exists {
		return nil, nil, streamNotFound
	}
	c, exists := st.consumers[name]
	if !exists {
		return nil, nil, consumerNotFound
	}
	return st, c, nil
}

func (c *consumer) info(of *stream) answer {
	cfg := c.config
	cfg.Metadata = shown(cfg.Metadata)
	out := answer{
		"stream_name": of.config.Name, "name": cfg.Durable, "created": c.created, "config": cfg, "ts": time.Now().UTC(),
	}
	if cfg.PauseUntil != nil && time.Now().Before(*cfg.PauseUntil) {
		out["paused"], out["pause_remaining"] = true, time.Until(*cfg.PauseUntil)
	}
	return out
}

// The server's defaults.
const (
	defaultAckWait       = 30 * time.Second
	defaultMaxWaiting    = 512
	defaultMaxAckPending = 1000
)

// checkConsumer fills in what is left out, and refuses what cannot be.
func checkConsumer(c *jetstream.ConsumerConfig, of jetstream.StreamConfig) *refusal {
	c.MaxDeliver = unlimited(c.MaxDeliver)
	if c.DeliverSubject == "" && c.MaxWaiting == 0 {
		c.MaxWaiting = defaultMaxWaiting
	}
	acks := c.AckPolicy == jetstream.AckExplicitPolicy || c.AckPolicy == jetstream.AckAllPolicy
	if c.AckWait == 0 && acks {
		c.AckWait = defaultAckWait
	}
	if len(c.BackOff) > 0 {
		c.AckWait = c.BackOff[0]
	}
	if c.MaxAckPending == 0 {
		c.MaxAckPending = of.ConsumerLimits.MaxAckPending
	}
	if c.MaxAckPending == 0 && c.AckPolicy != jetstream.AckNonePolicy {
		c.MaxAckPending = defaultMaxAckPending
	}
	switch {
	case len(c.BackOff) > 0 && c.MaxDeliver != -1 && len(c.BackOff) > c.MaxDeliver:
		return backoffTooLong
	case c.DeliverSubject != "" && c.MaxWaiting != 0:
		return pushMaxWaiting
	case c.FilterSubject != "" && len(c.FilterSubjects) > 0:
		return twoFilters
	}
	return nil
}

// consumerChanges refuses those that a living consumer does not take.
func consumerChanges(old, next jetstream.ConsumerConfig) *refusal {
	switch {
	case old.DeliverPolicy != next.DeliverPolicy:
		return invalidConsumer("deliver policy can not be updated")
	case old.MemoryStorage != next.MemoryStorage:
		return invalidConsumer("storage type can not be updated")
	case old.OptStartSeq != next.OptStartSeq:
		return invalidConsumer("start sequence can not be updated")
	case old.AckPolicy != next.AckPolicy:
		return invalidConsumer("ack policy can not be updated")
	case old.ReplayPolicy != next.ReplayPolicy:
		return invalidConsumer("replay policy can not be updated")
	case old.DeliverSubject == "" && next.DeliverSubject != "":
		return invalidConsumer("can not update pull consumer to push based")
	case old.DeliverSubject != "" && next.DeliverSubject == "":
		return invalidConsumer("can not update push consumer to pull based")
	case old.MaxWaiting != next.MaxWaiting:
		return invalidConsumer("max waiting can not be updated")
	}
	return nil
}

// consumerLevel is the lowest level of the API that has the settings.
func consumerLevel(c jetstream.ConsumerConfig) string {
	if c.PauseUntil != nil && !c.PauseUntil.IsZero() || c.PriorityPolicy != jetstream.PriorityPolicyNone {
		return "1"
	}
	return "0"
}
