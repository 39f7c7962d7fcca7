package trigger

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// requestTimeout is how long a request may take to arrive, with its body.
const requestTimeout = 5 * time.Second

const (
	// leastRoom is how many bytes of requests are held at the same time.
	leastRoom = 64 << 20
	// requestCost is what a request costs besides its body, roughly.
	requestCost = 16 << 10
)

// room bounds the memory for requests that are being served. One address never takes more than half of it, so that
// nobody alone shuts out others.
//
// Invariant: taken is the sum of by.
type room struct {
	mu    sync.Mutex
	most  int64
	taken int64
	by    map[netip.Prefix]int64
}

var errBusy = errors.New("too many requests at the same time; try again")

// fit makes the room large enough for bodies of so many bytes.
func (r *room) fit(largest int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = max(r.most, leastRoom, 4*(largest+requestCost))
}

func (r *room) take(who netip.Prefix, n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken+n > r.most || r.by[who]+n > r.most/2 {
		return false
	}
	if r.by == nil {
		r.by = map[netip.Prefix]int64{}
	}
	r.taken += n
	r.by[who] += n
	return true
}

func (r *room) give(who netip.Prefix, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= n
	if r.by[who] -= n; r.by[who] == 0 {
		delete(r.by, who)
	}
}

// bound refuses requests for which there is no room, and has the others' bodies take room as they arrive.
func (r *room) bound(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := &bounded{ReadCloser: req.Body, room: r, who: comesFrom(req)}
		if !body.take(requestCost) {
			busy(w)
			return
		}
		defer func() { r.give(body.who, body.taken) }()
		req.Body = body
		h.ServeHTTP(w, req)
	})
}

// comesFrom is where a request comes from. A host has a whole /64 of IPv6.
func comesFrom(req *http.Request) netip.Prefix {
	from, _ := netip.ParseAddrPort(req.RemoteAddr)
	address := from.Addr().Unmap()
	who, _ := address.Prefix(min(address.BitLen(), 64))
	return who
}

// busy has the sender try again.
func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close") // otherwise the server waits for the rest of the body
	http.Error(w, errBusy.Error(), http.StatusServiceUnavailable)
}

// bounded is a body that takes room.
type bounded struct {
	io.ReadCloser

	room  *room
	who   netip.Prefix
	taken int64
}

func (b *bounded) take(n int64) bool {
	has := b.room.take(b.who, n)
	if has {
		b.taken += n
	}
	return has
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.take(int64(n)) {
		return 0, errBusy
	}
	return n, err
}
