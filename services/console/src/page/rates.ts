import type { Counts } from '../api/counts.ts'
import type { StepDetail } from '../api/model-detail.ts'

/** Rates and times between two readings. Milliseconds are those of an average request; NaN if there was none. */
export interface Rates {
  readonly requestsPerSecond: number
  readonly failuresPerSecond: number
  readonly requestMs: number
  readonly queueMs: number
  readonly computeMs: number
  readonly transferMs: number
}

/**
 * Computes rates from two readings.
 *
 * @returns undefined without two readings, or if counts went back: the model was loaded anew.
 */
export function countRates(
  now: Counts | undefined,
  before: Counts | undefined,
  elapsedMs: number,
): Rates | undefined {
  if (now === undefined || before === undefined || elapsedMs <= 0) return undefined
  const requests = now.requests - before.requests
  const failures = now.failures - before.failures
  const requestMs = now.requestMs - before.requestMs
  const queueMs = now.queueMs - before.queueMs
  const computeMs = now.computeMs - before.computeMs
  // A server that began anew may have more requests by now, which took less time.
  const hasGoneBack = [requests, failures, requestMs, queueMs, computeMs].some((one) => one < 0)
  if (hasGoneBack) return undefined
  return {
    requestsPerSecond: (requests / elapsedMs) * 1000,
    failuresPerSecond: (failures / elapsedMs) * 1000,
    requestMs: requestMs / requests,
    queueMs: queueMs / requests,
    computeMs: computeMs / requests,
    transferMs: Number.NaN,
  }
}

/**
 * Computes the rates of a step as `countRates` does. Failures are those of the step's model for all callers; NaN if not known.
 */
export function stepRates(
  now: StepDetail,
  before: StepDetail | undefined,
  elapsedMs: number,
): Rates | undefined {
  // The ensemble may have other steps now.
  if (now.name !== before?.name || now.model !== before.model) return undefined
  if (now.totals === undefined || before.totals === undefined || elapsedMs <= 0) return undefined
  const requests = now.totals.requests - before.totals.requests
  const failures = (now.failures ?? Number.NaN) - (before.failures ?? Number.NaN)
  if (requests < 0 || failures < 0) return undefined
  const queueMs = (now.totals.queueMs - before.totals.queueMs) / requests
  const computeMs = (now.totals.computeMs - before.totals.computeMs) / requests
  const transferMs = (now.totals.transferMs - before.totals.transferMs) / requests
  return {
    requestsPerSecond: (requests / elapsedMs) * 1000,
    failuresPerSecond: (failures / elapsedMs) * 1000,
    requestMs: queueMs + computeMs + transferMs,
    queueMs,
    computeMs,
    transferMs,
  }
}

/** Writes a time with three digits and a unit that fits; an en dash if the time is not known. */
export function formatMs(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return '–'
  if (ms === 0) return '0 ms'
  if (ms >= 999.5) return `${digits(ms / 1000)} s`
  return ms < 0.9995 ? `${digits(ms * 1000)} µs` : `${digits(ms)} ms`
}

export function formatRate(perSecond: number | undefined): string {
  if (perSecond === undefined || !Number.isFinite(perSecond)) return '–'
  if (perSecond === 0) return '0/s'
  // One request in a long interval, say.
  return perSecond < LEAST_SHOWN ? `<${LEAST_SHOWN}/s` : `${digits(perSecond)}/s`
}

/** Least rate that two decimals show. */
const LEAST_SHOWN = 0.01

/** Formats a number with three digits after rounding; large numbers have more. */
function digits(value: number): string {
  if (value >= 99.95) return Math.round(value).toLocaleString('en')
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2)
}
