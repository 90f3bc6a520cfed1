import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { openGrpcClient, openRestClient } from '@tutti/command-line/client'
import t, { type Test } from 'tap'
import { runCommand } from '../testing/run-command.ts'

const MAIN = join(import.meta.dirname, '../main.ts')

/** A server that accepts connections and never answers, until the test ends. @returns `HOST:PORT`. */
async function openSilent(t: Test): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).resume())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  return `127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

const commandsOf = (host: string): readonly (readonly string[])[] => [
  ['infer', 'm', `--url=grpc://${host}`],
  ['infer', 'm', `--url=https://${host}`],
  ['trace', 'm', `--url=http://${host}`],
  ['bench', 'm', `--url=grpcs://${host}`, `--url=http://${host}`],
  ['top', `--url=http://${host}`],
]

await t.test('no command waits longer for a silent server than its flag says', async (t) => {
  const host = await openSilent(t)
  const commands = commandsOf(host)
  const ended = commands.map((argv) => runCommand([...argv, '--timeout-secs=1']))
  const want = `${host} did not answer within 1 s; --timeout-secs sets another limit\n`
  for (const [i, { code, err }] of (await Promise.all(ended)).entries()) {
    t.equal(code, 1)
    t.ok(err.startsWith(`tutti ${commands[i]?.[0]}: ${want}`), err)
  }
})

await t.test('the process ends with its command', async (t) => {
  const host = await openSilent(t)
  const argv = [MAIN, 'infer', 'm', `--url=grpcs://${host}`, '--timeout-secs=1']
  const ended = promisify(execFile)(process.execPath, argv, { timeout: 60_000 })
  await t.rejects(ended, { code: 1, killed: false, stderr: /did not answer within 1 s/ })
})

await t.test('what is asked before a request has a limit of its own', async (t) => {
  const host = await openSilent(t)
  for (const [protocol, open] of [
    ['grpc', openGrpcClient],
    ['http', openRestClient],
  ] as const) {
    const url = new URL(`${protocol}://${host}`)
    const client = open({ url, tls: {}, headers: {}, lookUpMs: 100 })
    const late = { reason: 'DEADLINE_EXCEEDED', message: /did not answer within 0\.1 s/ } as const
    await t.rejects(client.metadata('m', ''), late)
    await t.rejects(client.models(), late)
    client.close()
  }
})
