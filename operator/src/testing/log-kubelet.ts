import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { createTestCertificates } from '@tutti/chassis/testing'
import { type PlainClient, takeForwards } from '@tutti/kube/testing'
import type { Test } from 'tap'

interface Log {
  readonly pod: string
  readonly lines: string[]
  readonly followers: Set<ServerResponse>
}

/** A pod's name up to what its Deployment and ReplicaSet add. */
const OWNER = /^(.+?)(?:-step)?-[0-9a-z]+-[0-9a-z]{5}$/

/** Starts a substitute for the kubelet of `node-1`, which gives the API server logs of containers and accepts port forwards. */
export async function startKubelet(t: Test, plain: PlainClient) {
  const files = await createTestCertificates(t.testdir())
  const [cert, key] = await Promise.all([readFile(files.certFile), readFile(files.keyFile)])
  /** By Model, or `tutti-router`: the pod that asked last. */
  const logs = new Map<string, Log>()
  const first = new Map<string, string[]>()
  const asked: Record<string, string>[] = []
  let onFollow: (() => void) | undefined
  let isBroken = false
  const logOf = (pod: string): Log => {
    const [, owner = pod] = OWNER.exec(pod) ?? []
    const known = logs.get(owner)
    if (known?.pod === pod) return known
    const waiting =
      known === undefined || known.pod === '' ? (known?.lines ?? []) : (first.get(owner) ?? [])
    const log = { pod, lines: waiting, followers: new Set<ServerResponse>() }
    logs.set(owner, log)
    return log
  }
  const server = createServer({ cert, key }, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'https://kubelet')
    const [, , , pod = ''] = pathname.split('/')
    asked.push(Object.fromEntries(searchParams))
    if (isBroken) {
      response.writeHead(500).end('disk is gone')
      return
    }
    const log = logOf(pod)
    response.writeHead(200, { 'content-type': 'text/plain' })
    response.flushHeaders()
    for (const line of log.lines) response.write(line)
    if (searchParams.get('follow') !== 'true') {
      response.end()
      return
    }
    log.followers.add(response)
    onFollow?.()
  })
  // Nothing listens in pods that are played.
  const forwards = takeForwards(server, {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  await plain.patch('/api/v1/nodes/node-1/status', {
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    },
  })
  return {
    /** Query parameters of the API server's requests so far. */
    asked: asked as readonly Record<string, string>[],
    /** Paths of the port forwards that the API server asked for. */
    forwards,
    /**
     * Writes a line to the log of an owner's pod.
     *
     * @param o.isFirstOfNext - true: the next pod of the owner begins with the line.
     */
    write: (owner: string, time: string, text: string, o: { isFirstOfNext?: boolean } = {}) => {
      const line = `2026-11-27T${time}Z ${text}\n`
      if (o.isFirstOfNext === true) {
        first.set(owner, [...(first.get(owner) ?? []), line])
        return
      }
      const log = logs.get(owner) ?? { pod: '', lines: [], followers: new Set<ServerResponse>() }
      logs.set(owner, log)
      log.lines.push(line)
      for (const follower of log.followers) follower.write(line)
    },
    /** Resolves when a reader follows the log of the owner. */
    followed: (owner: string): Promise<void> =>
      new Promise((resolve) => {
        onFollow = () => {
          if ((logs.get(owner)?.followers.size ?? 0) > 0) resolve()
        }
        onFollow()
      }),
    /** Makes all further requests for logs fail. */
    breakDown: (): void => {
      isBroken = true
    },
  }
}
