package s3store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"varve/internal/object"
)

// Config says which bucket, and how to reach it.
type Config struct {
	// Bucket is the bucket's name.
	Bucket string
	// Prefix is what the keys of the store begin with in the bucket, without slashes around it. Default none.
	Prefix string
	// Endpoint is the URL of a server other than Amazon's. Default Amazon's, by region.
	Endpoint string
	// Region is the bucket's region. Default the environment's, else us-east-1 if there is an Endpoint.
	Region string
	// AccessKey and SecretKey are the caller's. Default what the AWS SDK finds in environment, profile and machine.
	AccessKey, SecretKey string
	// PathStyle puts the bucket in the path rather than in the host's name. Default false.
	PathStyle bool
	// Attempts is how often a request is sent at most, until the server answers it. Default 8, some 6 seconds apart in all.
	Attempts int
	// ReadOnly opens the store to be read: not even a probe is written, and puts and deletes are refused. Default false.
	ReadOnly bool
	// AnswerTimeout is how long the server may take to begin its answer, and send nothing in the midst of a body. Default a
	// minute.
	AnswerTimeout time.Duration
	// Requests is how many requests of the store run at once at most; the others wait. Default 32.
	Requests int
	// PartBytes is the size of the parts in which an object larger than it is read and written. S3 takes no parts below
	// 5 MiB. Default 16 MiB.
	PartBytes int64
}

// Validate says which fields no store can be opened with.
func (c Config) Validate() error {
	var all []error
	if c.Bucket == "" {
		all = append(all, errors.New("bucket: empty"))
	}
	if c.Requests < 0 {
		all = append(all, fmt.Errorf("requests: %d is negative", c.Requests))
	}
	if c.PartBytes < 0 {
		all = append(all, fmt.Errorf("part bytes: %d is negative", c.PartBytes))
	}
	return errors.Join(all...)
}

// WithDefaults gives a copy with the defaults filled in that do not depend on the environment.
func (c Config) WithDefaults() Config {
	c.Attempts = cmp.Or(c.Attempts, 8)
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, time.Minute)
	c.Requests = cmp.Or(c.Requests, 32)
	c.PartBytes = cmp.Or(c.PartBytes, 16<<20)
	return c
}

func newClient(ctx context.Context, c Config) (*s3.Client, error) {
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = c.AnswerTimeout
		t.MaxIdleConnsPerHost = 64
	})
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(transport),
		config.WithRetryer(func() aws.Retryer { return newRetryer(c.Attempts, http.StatusConflict) }),
	}
	if c.Region != "" {
		load = append(load, config.WithRegion(c.Region))
	}
	if c.AccessKey != "" {
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, "")))
	}
	sdk, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, err
	}
	if _, err := sdk.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("%w: no credentials: %w", object.ErrDenied, err)
	}
	return s3.NewFromConfig(sdk, func(o *s3.Options) {
		o.HTTPClient = newLimited(transport, c.Requests)
		o.UsePathStyle = c.PathStyle
		o.DisableLogOutputChecksumValidationSkipped = true
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
			o.Region = cmp.Or(o.Region, "us-east-1")
			// Not every server knows the checksums of today; the signature covers the body's hash without them.
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	}), nil
}

// newRetryer sends a request again after what the SDK holds to be passing, and after the statuses of passing, such as 409,
// by which S3 says that it had another request for the key at the same time, not that the key is taken.
func newRetryer(attempts int, passing ...int) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.RateLimiter = ratelimit.None // a bucket of tokens shared by all requests would make one's fate depend on others
		for _, status := range passing {
			o.Retryables = append(o.Retryables, retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{status: {}}})
		}
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return backoff(attempt), nil
		})
	})
}

// backoff is how long to wait before a request is sent again: twice as long each time, up to a limit, less some jitter.
func backoff(attempt int) time.Duration {
	const first, most = 50 * time.Millisecond, 5 * time.Second
	ceiling := min(first<<min(attempt, 10), most)
	return ceiling/2 + rand.N(ceiling/2+1) //nolint:gosec // jitter is no secret
}
