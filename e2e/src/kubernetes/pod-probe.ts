import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PlainObject } from '@tutti/kube/testing'

/** A probe of a container, with the numbers that Kubernetes gives it by default. */
export interface PodProbe {
  readonly url: URL
  readonly delayMs: number
  readonly periodMs: number
  readonly timeoutMs: number
  readonly failureThreshold: number
  readonly successThreshold: number
}

/** @throws Error for a probe of another kind than httpGet. */
export function toPodProbe(
  probe: PlainObject | undefined,
  container: PlainObject,
  podIp: string,
): PodProbe | undefined {
  if (probe === undefined) return undefined
  const { httpGet, initialDelaySeconds = 0, periodSeconds = 10, timeoutSeconds = 1 } = probe
  if (httpGet === undefined) throw new Error(`container ${container['name']}: want httpGet probes`)
  const named = (container['ports'] ?? []).find(({ name }: PlainObject) => name === httpGet.port)
  const port = named?.containerPort ?? httpGet.port
  return {
    url: new URL(httpGet.path ?? '/', `http://${podIp}:${port}`),
    delayMs: initialDelaySeconds * 1000,
    periodMs: periodSeconds * 1000,
    timeoutMs: timeoutSeconds * 1000,
    failureThreshold: probe['failureThreshold'] ?? 3,
    successThreshold: probe['successThreshold'] ?? 1,
  }
}

/**
 * Probes until the signal aborts, and tells each time the threshold is passed: `true` after so many successes in a row, `false`
 * after so many failures. The first result comes at once.
 */
export async function watchProbe(
  probe: PodProbe,
  onVerdict: (isFine: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  let isFine: boolean | undefined
  let inRow = 0
  if (!(await pause(probe.delayMs, signal))) return
  do {
    const answered = await ask(probe, signal)
    if (signal.aborted) return
    inRow = answered === isFine ? inRow + 1 : 1
    isFine = answered
    const wanted = answered ? probe.successThreshold : probe.failureThreshold
    if (inRow === wanted) onVerdict(answered)
  } while (await pause(probe.periodMs, signal))
}

async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return await sleep(ms, true, { signal }).catch(() => false)
}

/** On a connection of its own, as the kubelet. */
function ask({ url, timeoutMs }: PodProbe, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  return new Promise((resolve) => {
    const request = get(url, { agent: false, signal: limit }, (response) => {
      const status = response.statusCode ?? 0
      response.resume()
      resolve(status >= 200 && status < 400)
    })
    request.on('error', () => resolve(false))
  })
}
