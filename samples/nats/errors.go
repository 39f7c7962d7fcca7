package nats

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/external"
)

// refusal is the error if NATS refuses a request.
type refusal struct{ api jetstream.APIError }

// Error returns the reason that NATS gives, with the error code from the documentation of NATS.
func (r *refusal) Error() string {
	text := fmt.Sprintf("NATS refuses: %s (error %d)", r.api.Description, r.api.ErrorCode)
	if out := wayOut[r.api.ErrorCode]; out != "" {
		text += "; " + out
	}
	return text
}

// Error codes of the JetStream API, as in the server's errors.json.
const (
	codeAccountResources   = 10002
	codeNoPeers            = 10005
	codeConsumerCreate     = 10012
	codeConsumerNameInUse  = 10013
	codeConsumerNotFound   = 10014
	codeInsufficient       = 10023
	codeMaxConsumers       = 10026
	codeMaxStreams         = 10027
	codeMemoryExceeded     = 10028
	codeNoAccount          = 10035
	codeNotEnabledForUs    = 10039
	codeStorageExceeded    = 10047
	codeStreamInvalid      = 10052
	codeStreamLimits       = 10053
	codeStreamNameInUse    = 10058
	codeStreamNotFound     = 10059
	codeSubjectsOverlap    = 10065
	codeReplicasStandalone = 10074
	codeNotEnabled         = 10076
	codeWQUnfiltered       = 10099
	codeWQNotUnique        = 10100
	codeConsumerActive     = 10105
	codeNoLimits           = 10120
	codeMoveInProgress     = 10124
	codeReplicasExceed     = 10126
	codeConsumerExists     = 10148
	codeConsumerGone       = 10149
	codeReconfiguring      = 10226
)

// wayOut says what to do about refusals whose text does not.
var wayOut = map[jetstream.ErrorCode]string{ //nolint:gochecknoglobals // a constant table
	codeSubjectsOverlap:    "choose other subjects, or remove these from the stream that has them",
	codeReplicasStandalone: "set spec.replicas to 1, or run NATS as a cluster",
	codeStreamNotFound:     "create the stream; if it belongs to a Stream object, name that in spec.streamRef",
	codeNotEnabledForUs:    "enable JetStream for the operator's account",
	codeNoPeers:            "relax spec.placement or spec.replicas, or add servers that match",
	codeStorageExceeded:    "free some storage, or raise the limit of the server",
	codeMemoryExceeded:     "free some memory, or raise the limit of the server",
}

// classes are the meanings of error codes whose status code is not sufficient.
var classes = map[jetstream.ErrorCode]external.Class{ //nolint:gochecknoglobals // a constant table
	// Something else conflicts and may be removed.
	codeStreamNameInUse:   external.ClassConflict,
	codeStreamNotFound:    external.ClassConflict,
	codeSubjectsOverlap:   external.ClassConflict,
	codeConsumerNameInUse: external.ClassConflict,
	codeConsumerNotFound:  external.ClassConflict,
	codeConsumerActive:    external.ClassConflict,
	codeConsumerExists:    external.ClassConflict,
	codeConsumerGone:      external.ClassConflict,
	codeWQUnfiltered:      external.ClassConflict,
	codeWQNotUnique:       external.ClassConflict,
	codeMoveInProgress:    external.ClassConflict,
	codeReconfiguring:     external.ClassConflict,
	codeReplicasExceed:    external.ClassConflict, // the number of the stream's replicas may be increasing

	// Storage may be freed, and servers may be added.
	codeAccountResources: external.ClassTransient,
	codeInsufficient:     external.ClassTransient,
	codeMemoryExceeded:   external.ClassTransient,
	codeStorageExceeded:  external.ClassTransient,
	codeMaxConsumers:     external.ClassTransient,
	codeMaxStreams:       external.ClassTransient,
	codeNoPeers:          external.ClassTransient,

	// The account has no JetStream, or may not do this.
	codeNoAccount:       external.ClassDenied,
	codeNotEnabledForUs: external.ClassDenied,
	codeNotEnabled:      external.ClassDenied,
	codeNoLimits:        external.ClassDenied,

	// Mistakes in the spec that NATS reports as server errors.
	codeConsumerCreate:     external.ClassInvalid,
	codeStreamInvalid:      external.ClassInvalid,
	codeStreamLimits:       external.ClassInvalid,
	codeReplicasStandalone: external.ClassInvalid,
}

// classify returns the meaning of an error. All drivers use it.
func classify(err error) external.Class {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return external.ClassUnknown
	}
	if c, ok := classes[r.api.ErrorCode]; ok {
		return c
	}
	switch {
	case r.api.Code == 429:
		return external.ClassThrottled
	case r.api.Code >= 500:
		return external.ClassTransient
	}
	return external.ClassInvalid
}

// isCode reports whether NATS refused the request with one of codes.
func isCode(err error, codes ...jetstream.ErrorCode) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && slices.Contains(codes, r.api.ErrorCode)
}
