package disturb

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// What disturbed calls fail with; package fault says what each means.
var (
	ErrNoAnswer    error = timeout("fault: no answer came in time")
	ErrThrottled         = errors.New("fault: too many requests, try again later")
	ErrUnavailable       = errors.New("fault: internal error of the external API")
	ErrDead              = errors.New("fault: this process was killed")
)

type timeout string

func (t timeout) Error() string { return string(t) }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func refused() error { return fmt.Errorf("fault: dial tcp: %w", syscall.ECONNREFUSED) }

// Answers lists the disturbances that are seen in the answer to one call, or in its lack.
func Answers() []string {
	return []string{
		schedule.CrashBefore, schedule.CrashAfter, schedule.LostAnswer, schedule.NoAnswer,
		schedule.Throttled, schedule.Failed, schedule.Refused, schedule.FailedAfter,
		schedule.LateWrite, schedule.OldCache, schedule.LateEffect,
	}
}

// HasEffect reports whether a call with this disturbance takes effect.
func HasEffect(kind string) bool {
	switch kind {
	case schedule.CrashBefore, schedule.NoAnswer, schedule.Throttled, schedule.Failed, schedule.Refused, schedule.LateWrite, schedule.LateEffect:
		return false
	}
	return true
}

// Departs reports whether a call with this disturbance is still on its way when its caller gets an answer or dies, and
// takes effect later.
func Departs(kind string) bool { return kind == schedule.LateWrite || kind == schedule.LateEffect }

// Kills reports whether the process is dead after a call with this disturbance.
func Kills(kind string) bool {
	switch kind {
	case schedule.CrashBefore, schedule.CrashAfter, schedule.LateWrite, schedule.OldCache:
		return true
	}
	return false
}

// Answer is what a caller of Kubernetes gets in place of the real answer; neither for "" and for
// disturbances that leave the answer as it is.
func Answer(kind string, r *http.Request) (*http.Response, error) {
	switch kind {
	case schedule.CrashBefore, schedule.CrashAfter, schedule.LateWrite, schedule.OldCache:
		return nil, ErrDead
	case schedule.LostAnswer, schedule.NoAnswer, schedule.LateEffect:
		return nil, ErrNoAnswer
	case schedule.Refused:
		return nil, refused()
	case schedule.Throttled:
		return Throttle(r, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonTooManyRequests, Message: "fault: too many requests"}), nil
	case schedule.Failed:
		return apiserver.Answer(r, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "fault: internal error"}), nil
	}
	return nil, nil
}

// Throttle is an answer that asks for a pause of a second.
func Throttle(r *http.Request, status metav1.Status) *http.Response {
	status.Code = http.StatusTooManyRequests
	a := apiserver.Answer(r, status)
	a.Header.Set("Retry-After", "1")
	return a
}

// Failure is what a caller of the external API gets in place of the real answer; nil for "" and for
// disturbances that leave the answer as it is.
func Failure(kind string) error {
	switch kind {
	case schedule.CrashBefore, schedule.CrashAfter, schedule.LateWrite, schedule.OldCache:
		return ErrDead
	case schedule.LostAnswer, schedule.NoAnswer, schedule.LateEffect:
		return ErrNoAnswer
	case schedule.Throttled:
		return ErrThrottled
	case schedule.Failed, schedule.FailedAfter:
		return ErrUnavailable
	case schedule.Refused:
		return refused()
	}
	return nil
}
