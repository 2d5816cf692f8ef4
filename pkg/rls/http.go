package rls

import (
	"io"
	"net/http"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// DefaultMaxBodyBytes bounds the body of /json: the size of the largest gRPC
// message, so that both doors take the same requests.
const DefaultMaxBodyBytes = DefaultMaxMessageBytes

// NewHTTPHandler serves /json, the service for callers without gRPC, and
// /healthcheck, both for every method. maxBody bounds the body of a request
// in bytes; 0 means DefaultMaxBodyBytes.
func NewHTTPHandler(s *Service, h *Health, maxBody int64) http.Handler {
	if maxBody <= 0 {
		maxBody = DefaultMaxBodyBytes
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		s.serveJSON(w, r, maxBody)
	})
	mux.HandleFunc("/healthcheck", func(w http.ResponseWriter, _ *http.Request) {
		if !h.OK() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", textPlain)
		_, _ = io.WriteString(w, "OK") // a client that is gone needs no answer
	})
	return mux
}

const textPlain = "text/plain; charset=utf-8"

// serveJSON answers 200 or 429 with the response, and 400 with a fixed text
// to whatever gRPC would answer with an error, as the service we replace.
func (s *Service) serveJSON(w http.ResponseWriter, r *http.Request, maxBody int64) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		badRequest(w)
		return
	}
	var req rlsv3.RateLimitRequest
	if err := protojson.Unmarshal(body, &req); err != nil {
		badRequest(w)
		return
	}
	response, err := s.ShouldRateLimit(r.Context(), &req)
	if err != nil {
		badRequest(w)
		return
	}
	text, err := protojson.Marshal(response)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if response.GetOverallCode() == codeOver {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text) // a client that is gone needs no answer
}

func badRequest(w http.ResponseWriter) {
	http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
}
