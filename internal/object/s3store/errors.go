package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"varve/internal/object"
)

// status is the HTTP status of the answer that the error tells of, 0 without an answer.
func status(err error) int {
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return answer.HTTPStatusCode()
	}
	return 0
}

// mapped adds the condition that callers test for to an error of the SDK.
func mapped(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	condition := conditionOf(status(err), codeOf(err))
	switch {
	case condition == nil:
		return err
	case errors.Is(condition, object.ErrNotFound):
		return condition // the cause adds nothing
	}
	return fmt.Errorf("%w: %w", condition, err)
}

func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// conditionOf gives nil for what is the caller's mistake, such as a bucket that is not there. Codes go first: servers do
// not agree on all statuses.
func conditionOf(status int, code string) error {
	switch code {
	case "NoSuchKey", "NotFound":
		return object.ErrNotFound
	case "NoSuchBucket", "NotImplemented":
		return nil
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "XAdminUserNotFound":
		return object.ErrDenied
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return object.ErrFull
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return object.ErrDenied
	case http.StatusInsufficientStorage:
		return object.ErrFull
	case http.StatusNotImplemented:
		return nil
	case 0, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return object.ErrUnavailable
	}
	if status >= http.StatusInternalServerError {
		return object.ErrUnavailable
	}
	return nil
}
