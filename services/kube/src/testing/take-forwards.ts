import type { Server } from 'node:http'
import { connect } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

const DATA = 0
const ERROR = 1

/**
 * Makes a server accept port forwards to pods, as a kubelet does, with the protocol `v4.channel.k8s.io`.
 *
 * @param ports - port of a pod -> port of this machine that stands for it; other ports of pods refuse connections.
 * @returns the paths of the requests, to which each new request is added.
 */
export function takeForwards(
  server: Pick<Server, 'on'>,
  ports: Readonly<Record<string, number>>,
): readonly string[] {
  const asked: string[] = []
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => offered.has('v4.channel.k8s.io') && 'v4.channel.k8s.io',
  })
  server.on('upgrade', (request, socket, head) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://kubelet')
    asked.push(pathname)
    const port = searchParams.get('ports') ?? searchParams.get('port') ?? ''
    sockets.handleUpgrade(request, socket, head, (one) => {
      for (const channel of [DATA, ERROR]) {
        one.send(Buffer.of(channel, Number(port) & 255, Number(port) >> 8))
      }
      const target = ports[port]
      if (target === undefined) one.send(say(ERROR, `port ${port}: connection refused`))
      else join(one, target)
    })
  })
  return asked
}

function join(one: WebSocket, port: number): void {
  const target = connect(port, '127.0.0.1')
  target.on('data', (bytes) => one.send(say(DATA, bytes)))
  target.on('error', (error) => one.send(say(ERROR, error.message)))
  target.on('close', () => one.close())
  one.on('message', (message: Buffer) => target.write(message.subarray(1)))
  one.on('close', () => target.destroy())
}

function say(channel: number, content: Buffer | string): Buffer {
  return Buffer.concat([Buffer.of(channel), Buffer.from(content)])
}
