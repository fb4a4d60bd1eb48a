package protocoltest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/internal/engine/remote"
)

func mustRead(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func carriesKey(s Seen) bool {
	for _, values := range s.Header {
		if strings.Contains(strings.Join(values, " "), Key) {
			return true
		}
	}
	return strings.Contains(s.Raw, Key) || strings.Contains(s.Path, Key)
}

// keys: the key goes to its own address, and to no other, however it is led there.
func (f Format) keys(t *testing.T) {
	own := Serve(t, File(t, "text.sse"))
	if _, err := f.open(t, Endpoint(own)).Complete(context.Background(), Ask); err != nil {
		t.Fatal(err)
	}
	if s := own.Last(t); !carriesKey(s) || strings.Contains(s.Raw, Key) {
		t.Errorf("the key belongs into a header: %v", s.Header)
	}
	t.Run("another host name", func(t *testing.T) {
		// The same server by another name is another host.
		other := Serve(t, File(t, "text.sse"))
		byName := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
		for _, to := range []string{byName, other.URL} {
			s := Serve(t, Answer(307, "text/plain", "", "Location", to+"/v1/x"), Answer(308, "text/plain", "", "Location", "//"+strings.TrimPrefix(to, "http://")+"/v1/x"))
			for range 2 {
				_, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask)
				f.failed(t, err, remote.Redirected)
			}
		}
		if all := other.Requests(); len(all) != 0 {
			t.Errorf("another host was asked %d times, with the key: %v", len(all), carriesKey(all[0]))
		}
	})
	t.Run("refused addresses", func(t *testing.T) {
		for _, address := range []string{"http://169.254.169.254", "http://[fe80::1%25lo]:80", "http://0.0.0.0:1", "http://[::]:1", "http://[::ffff:169.254.1.1]:1", "http://224.0.0.1:1", "http://[fd00:ec2::254]"} {
			e := Endpoint(own)
			e.BaseURL = address
			_, err := f.open(t, e).Complete(context.Background(), Ask)
			f.failed(t, err, remote.Rejected)
			if !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s: %v", address, err)
			}
		}
	})
	t.Run("nothing listens", func(t *testing.T) {
		e := Endpoint(own)
		e.BaseURL = "http://127.0.0.1:1"
		_, err := f.open(t, e).Complete(context.Background(), Ask)
		f.failed(t, err, remote.Rejected)
	})
}
