package operator

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strconv"
	"time"

	"github.com/trimtab-dev/trimtab/internal/running"
	"github.com/trimtab-dev/trimtab/trace"
)

// debugHandler serves what the process says about itself, its metrics, the flight recorder and the profiles of Go.
func debugHandler(ring *trace.Ring, metrics http.Handler, describe func(*http.Request) running.Operator) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+running.Path, func(w http.ResponseWriter, r *http.Request) { serveDescription(w, r, describe) })
	mux.Handle("GET /debug/metrics", metrics)
	mux.HandleFunc("GET /debug/trace", func(w http.ResponseWriter, r *http.Request) { serveTrace(w, r, ring) })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return onlyLocal(mux)
}

// serveTrace writes the records that the query selects, in the form that trace.Decode reads, or as
// readable text with ?format=text.
func serveTrace(w http.ResponseWriter, r *http.Request, ring *trace.Ring) {
	q, err := traceQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	sink := trace.JSON(w)
	if r.URL.Query().Get("format") == "text" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		sink = trace.Text(w)
	}
	w.Header().Set("Trimtab-Dropped-Records", strconv.FormatUint(ring.Dropped(), 10))
	for _, record := range ring.Select(q) {
		sink.Record(record)
	}
}

func traceQuery(v url.Values) (trace.Query, error) {
	q := trace.Query{
		Controller: v.Get("controller"), Kind: v.Get("kind"), Namespace: v.Get("namespace"),
		Name: v.Get("name"), UID: v.Get("uid"),
	}
	if s := v.Get("since"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			return q, fmt.Errorf("since=%q: use a duration such as 10m", s)
		}
		q.Since = time.Now().Add(-d)
	}
	if s := v.Get("last"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return q, fmt.Errorf("last=%q: use a number of records", s)
		}
		q.Last = n
	}
	return q, nil
}
