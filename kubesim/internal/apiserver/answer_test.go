package apiserver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Clients write the options of a delete in the group of its object.
func TestPreconditions(t *testing.T) {
	for name, test := range map[string]struct {
		why, body, uid, resourceVersion string
	}{
		"built-in": {
			why:  "clients of built-in kinds use v1",
			body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"7"}}`, uid: "u", resourceVersion: "7",
		},
		"custom": {
			why:  "clients of custom kinds use their group, which no codec here knows",
			body: `{"kind":"DeleteOptions","apiVersion":"corpus.example.com/v1","preconditions":{"uid":"u"}}`, uid: "u",
		},
		"none":      {why: "most have none", body: `{"kind":"DeleteOptions","apiVersion":"v1"}`},
		"empty":     {why: "no options at all"},
		"malformed": {why: "the server will refuse it", body: `{"preconditions":7}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://x", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			uid, rv := Preconditions(r)
			if uid != test.uid || rv != test.resourceVersion {
				t.Errorf("%s: preconditions are %q and %q; want %q and %q", test.why, uid, rv, test.uid, test.resourceVersion)
			}
			if left, err := io.ReadAll(r.Body); err != nil || string(left) != test.body {
				t.Errorf("the request's body is now %q, %v; want it unchanged", left, err)
			}
		})
	}
}

// Whoever carries a request may read what a delete requires before it is sent.
func TestPreconditionsAreSent(t *testing.T) {
	w := newGuardedCluster(t)
	carried := &Transport{Server: w.server, Client: Client{DB: w.db}, Around: func(_ *request.RequestInfo, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if r.Method == http.MethodDelete {
			if uid, _ := Preconditions(r); uid != "another" {
				t.Errorf("the UID is %q; want another", uid)
			}
		}
		return send()
	}}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://kubesim", Transport: carried})
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	uid := types.UID("another")
	err = maps.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if !apierrors.IsConflict(err) {
		t.Errorf("a delete of another object: %v; want a conflict", err)
	}
}
