// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateHooksAndProbes checks what runs while a container or sidecar does.
func (s *podScope) validateHooksAndProbes(c *corev1.Container, path *field.Path) field.ErrorList {
	errs := s.validateLifecycle(c.Lifecycle, path.Child("lifecycle"))

	if probe, path := c.LivenessProbe, path.Child("livenessProbe"); probe != nil {
		errs = append(errs, validateProbe(probe, path)...)
		errs = append(errs, validateSucceedsAtOnce(probe, path)...)
	}
	if probe, path := c.ReadinessProbe, path.Child("readinessProbe"); probe != nil {
		errs = append(errs, validateProbe(probe, path)...)
		if probe.TerminationGracePeriodSeconds != nil {
			errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), probe.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
		}
	}
	if probe, path := c.StartupProbe, path.Child("startupProbe"); probe != nil {
		errs = append(errs, validateProbe(probe, path)...)
		errs = append(errs, validateSucceedsAtOnce(probe, path)...)
	}
	return errs
}

func validateProbe(probe *corev1.Probe, path *field.Path) field.ErrorList {
	errs := validateUnion(path, []member{
		memberOf("exec", probe.Exec, validateExec),
		memberOf("httpGet", probe.HTTPGet, validateHTTPGet),
		memberOf("tcpSocket", probe.TCPSocket, validateTCPSocket),
		memberOf("grpc", probe.GRPC, validateGRPC),
	}, noHandler, tooManyHandlers)
	for _, f := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", probe.InitialDelaySeconds},
		{"timeoutSeconds", probe.TimeoutSeconds},
		{"periodSeconds", probe.PeriodSeconds},
		{"successThreshold", probe.SuccessThreshold},
		{"failureThreshold", probe.FailureThreshold},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(f.value), path.Child(f.name))...)
	}
	if period := probe.TerminationGracePeriodSeconds; period != nil && *period <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *period, "must be greater than 0"))
	}
	return errs
}

// validateSucceedsAtOnce checks that a probe that ends a container when it fails
// asks for no more than one success.
func validateSucceedsAtOnce(probe *corev1.Probe, path *field.Path) field.ErrorList {
	if probe.SuccessThreshold == 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("successThreshold"), probe.SuccessThreshold, "must be 1")}
}

func (s *podScope) validateLifecycle(lifecycle *corev1.Lifecycle, path *field.Path) field.ErrorList {
	if lifecycle == nil {
		return nil
	}
	var errs field.ErrorList
	if lifecycle.PostStart != nil {
		errs = append(errs, s.validateHook(lifecycle.PostStart, path.Child("postStart"))...)
	}
	if lifecycle.PreStop != nil {
		errs = append(errs, s.validateHook(lifecycle.PreStop, path.Child("preStop"))...)
	}
	if lifecycle.StopSignal != nil {
		errs = append(errs, validateStopSignal(*lifecycle.StopSignal, s.spec.OS, path.Child("stopSignal"))...)
	}
	return errs
}

func (s *podScope) validateHook(hook *corev1.LifecycleHandler, path *field.Path) field.ErrorList {
	return validateUnion(path, []member{
		memberOf("exec", hook.Exec, validateExec),
		memberOf("httpGet", hook.HTTPGet, validateHTTPGet),
		memberOf("tcpSocket", hook.TCPSocket, validateTCPSocket),
		memberOf("sleep", hook.Sleep, s.validateSleep),
	}, noHandler, tooManyHandlers)
}

const (
	noHandler       = "must specify a handler type"
	tooManyHandlers = "may not specify more than 1 handler type"
)

func validateExec(exec *corev1.ExecAction, path *field.Path) field.ErrorList {
	if len(exec.Command) == 0 {
		return field.ErrorList{field.Required(path.Child("command"), "")}
	}
	return nil
}

func validateHTTPGet(get *corev1.HTTPGetAction, path *field.Path) field.ErrorList {
	errs := required(path.Child("path"), get.Path)
	errs = append(errs, validatePortOrName(get.Port, path.Child("port"))...)
	errs = append(errs, supported(path.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	for _, header := range get.HTTPHeaders {
		errs = append(errs, invalid(path.Child("httpHeaders"), header.Name, validation.IsHTTPHeaderName(header.Name))...)
	}
	return errs
}

func validateTCPSocket(tcp *corev1.TCPSocketAction, path *field.Path) field.ErrorList {
	return validatePortOrName(tcp.Port, path.Child("port"))
}

func validateGRPC(grpc *corev1.GRPCAction, path *field.Path) field.ErrorList {
	return validatePortOrName(intstr.FromInt32(grpc.Port), path.Child("port"))
}

func validatePortOrName(port intstr.IntOrString, path *field.Path) field.ErrorList {
	switch port.Type {
	case intstr.Int:
		return invalid(path, port.IntValue(), validation.IsValidPortNum(port.IntValue()))
	case intstr.String:
		return invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	default: // protobuf can carry anything
		return field.ErrorList{field.InternalError(path, fmt.Errorf("unknown type: %v", port.Type))}
	}
}

// validateSleep checks that a hook ends before its container is killed. Without
// a grace period, which is another error, there is nothing to check.
func (s *podScope) validateSleep(sleep *corev1.SleepAction, path *field.Path) field.ErrorList {
	period := s.spec.TerminationGracePeriodSeconds
	if period == nil || 0 <= sleep.Seconds && sleep.Seconds <= *period {
		return nil
	}
	return field.ErrorList{field.Invalid(path, sleep.Seconds,
		fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *period))}
}

var stopSignals = map[corev1.OSName][]corev1.Signal{
	corev1.Windows: {corev1.SIGKILL, corev1.SIGTERM},
	corev1.Linux: sets.List(sets.New(
		corev1.SIGABRT, corev1.SIGALRM, corev1.SIGBUS, corev1.SIGCHLD, corev1.SIGCLD, corev1.SIGCONT,
		corev1.SIGFPE, corev1.SIGHUP, corev1.SIGILL, corev1.SIGINT, corev1.SIGIO, corev1.SIGIOT,
		corev1.SIGKILL, corev1.SIGPIPE, corev1.SIGPOLL, corev1.SIGPROF, corev1.SIGPWR, corev1.SIGQUIT,
		corev1.SIGSEGV, corev1.SIGSTKFLT, corev1.SIGSTOP, corev1.SIGSYS, corev1.SIGTERM, corev1.SIGTRAP,
		corev1.SIGTSTP, corev1.SIGTTIN, corev1.SIGTTOU, corev1.SIGURG, corev1.SIGUSR1, corev1.SIGUSR2,
		corev1.SIGVTALRM, corev1.SIGWINCH, corev1.SIGXCPU, corev1.SIGXFSZ,
		corev1.SIGRTMIN, corev1.SIGRTMINPLUS1, corev1.SIGRTMINPLUS2, corev1.SIGRTMINPLUS3,
		corev1.SIGRTMINPLUS4, corev1.SIGRTMINPLUS5, corev1.SIGRTMINPLUS6, corev1.SIGRTMINPLUS7,
		corev1.SIGRTMINPLUS8, corev1.SIGRTMINPLUS9, corev1.SIGRTMINPLUS10, corev1.SIGRTMINPLUS11,
		corev1.SIGRTMINPLUS12, corev1.SIGRTMINPLUS13, corev1.SIGRTMINPLUS14, corev1.SIGRTMINPLUS15,
		corev1.SIGRTMAXMINUS14, corev1.SIGRTMAXMINUS13, corev1.SIGRTMAXMINUS12, corev1.SIGRTMAXMINUS11,
		corev1.SIGRTMAXMINUS10, corev1.SIGRTMAXMINUS9, corev1.SIGRTMAXMINUS8, corev1.SIGRTMAXMINUS7,
		corev1.SIGRTMAXMINUS6, corev1.SIGRTMAXMINUS5, corev1.SIGRTMAXMINUS4, corev1.SIGRTMAXMINUS3,
		corev1.SIGRTMAXMINUS2, corev1.SIGRTMAXMINUS1, corev1.SIGRTMAX,
	)),
}

func validateStopSignal(signal corev1.Signal, os *corev1.PodOS, path *field.Path) field.ErrorList {
	if os == nil {
		return field.ErrorList{field.Forbidden(path, "may not be set for containers with empty `spec.os.name`")}
	}
	if signals, known := stopSignals[os.Name]; known { // an unknown one is another error
		return supported(path, signal, signals...)
	}
	return nil
}
