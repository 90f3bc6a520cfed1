import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseStartProgress, type StartProgress } from '@tutti/api'
import { StatusLine, type StopSignal } from '@tutti/chassis'
import { freePort } from '@tutti/chassis/testing'
import {
  answerStatus,
  serveBytes,
  startArtifactServer,
  tarArchive,
} from '@tutti/repository/testing'
import t, { type Test } from 'tap'
import { FETCH_EXIT_CODES, runFetch } from './run-fetch.ts'

const ARCHIVE = tarArchive([
  { name: 'config.pbtxt', data: 'backend: "b"' },
  { name: '1/model.bin', data: 'weights' },
])

async function prepare(t: Test) {
  const server = await startArtifactServer(serveBytes(ARCHIVE, '"v1"'))
  t.teardown(() => server.close())
  const folder = t.testdir({
    'termination-log': 'what was there before, and is longer than the message by far',
    secret: { username: 'me', password: 'hidden\n', other: 'x' },
  })
  const terminationLog = join(folder, 'termination-log')
  const written: string[] = []
  const terminal = {
    columns: 200,
    onDraw: (_text: string): void => {},
    write: (text: string): void => {
      written.push(text)
      terminal.onDraw(text)
    },
  }
  let stop: ((signal: StopSignal) => void) | undefined
  const run = async (...argv: string[]) => {
    const printed = { out: '', err: '' }
    const code = await runFetch(
      'tutti-step fetch',
      [`--termination-log=${terminationLog}`, '--attempts=1', ...argv],
      {
        env: {},
        statusLine: new StatusLine(terminal),
        out: (text) => (printed.out += text),
        err: (text) => (printed.err += text),
        signals: {
          listen: (listener) => {
            stop = listener
            return () => {}
          },
        },
        exit: () => {},
      },
    )
    return { code, ...printed }
  }
  const uri = `--uri=${server.origin}/m.tar`
  const to = `--to=${join(folder, 'model')}`
  const shown = { written, statusLine: terminal }
  return { server, folder, run, uri, to, terminationLog, ...shown, stop: () => stop?.('SIGTERM') }
}

await t.test('it fetches, and says so', async (t) => {
  const { server, folder, run, uri, to } = await prepare(t)
  const first = await run(uri, to, `--secret-dir=${folder}/secret`)
  t.match(first, { code: 0, err: '', out: /"files":2,.*"message":"model fetched"/ })
  t.notMatch(first.out, 'hidden')
  const basic = `Basic ${Buffer.from('me:hidden').toString('base64')}`
  t.equal(server.heard[0]?.headers.authorization, basic)
  const printed = await run(uri, to, '--print-digest')
  t.match(printed, { code: 0, out: /^sha256:[0-9a-f]{64}\n$/, err: /model was there already/ })
  t.match(await run(uri, to, `--digest=${printed.out.trim()}`), { code: 0 })
})

await t.test('on a terminal a bar shows how far it is, which makes way for the log', async (t) => {
  const { server, run, uri, to, written, statusLine } = await prepare(t)
  const half = ARCHIVE.byteLength / 2
  server.script((_, response) => {
    response.writeHead(200, { 'content-length': ARCHIVE.byteLength })
    response.write(ARCHIVE.subarray(0, half))
    // The rest comes when the first half is shown.
    statusLine.onDraw = (text) => {
      if (text.includes(' 50 %')) response.end(ARCHIVE.subarray(half))
    }
  })
  t.match(await run(uri, to), { code: 0, out: /"message":"transfer ended"/ })
  const text = written.join('')
  t.match(text, /\[#{10}-{10}\] {2}50 % .* of .* {2}m\.tar/)
  t.match(written.at(-1), '\r\u001b[K')
})

await t.test('with a port it answers how many bytes have come', async (t) => {
  const { server, run, uri, to } = await prepare(t)
  const port = await freePort()
  const half = ARCHIVE.byteLength / 2
  const answer = async () =>
    parseStartProgress(await (await fetch(`http://127.0.0.1:${port}/tutti/v1/start`)).json())
  const told: StartProgress[] = []
  server.script((_, response) => {
    const untilHalf = async (): Promise<void> => {
      told.push(await answer())
      response.writeHead(200, { 'content-length': ARCHIVE.byteLength })
      response.write(ARCHIVE.subarray(0, half))
      for (;;) {
        const next = await answer()
        if (next.transfer?.bytes === half) {
          told.push(next)
          break
        }
      }
      response.end(ARCHIVE.subarray(half))
    }
    void untilHalf()
  })
  t.match(await run(uri, to, `--progress-port=${port}`), { code: 0 })
  t.same(told, [
    { loads: [] },
    { loads: [], transfer: { bytes: half, totalBytes: ARCHIVE.byteLength } },
  ])
  await t.rejects(answer(), 'it ends with the fetch')
})

await t.test('a port that is taken keeps no pod from a fetch', async (t) => {
  const { server, run, uri, to } = await prepare(t)
  const { port } = new URL(server.origin)
  const { code, out } = await run(uri, to, `--progress-port=${port}`)
  t.equal(code, 0)
  t.match(out, /"level":"warn".*"message":"progress of the fetch is not served"/)
})

await t.test('without one, the log tells what came', async (t) => {
  const { run, uri, to, written } = await prepare(t)
  const { out } = await run(uri, to)
  const [first] = out.split('\n').map((line) => line !== '' && JSON.parse(line))
  t.match(first, { message: 'transfer ended', uri: /m\.tar$/, bytes: ARCHIVE.byteLength })
  t.match(first.durationMs, Number)
  t.same(written, [], 'nothing for what is quick')
})

await t.test('it checks folders', async (t) => {
  const { folder, run, uri, to } = await prepare(t)
  await run(uri, to)
  const verify = `--verify=${join(folder, 'model')}`
  const printed = await run(verify, '--print-digest', '--log-info=false')
  t.match(printed, { code: 0, err: '' })
  t.match(await run(verify, `--digest=${printed.out.trim()}`), { code: 0 })
  await writeFile(join(folder, 'model/1/model.bin'), 'other')
  t.match(await run(verify, `--digest=${printed.out.trim()}`), { code: 14 })
  t.match(await run(`--verify=${folder}/gone`, '--print-digest'), { code: 10 })
  await mkdir(join(folder, 'empty'))
  const empty = await run(`--verify=${folder}/empty`, `--digest=${printed.out.trim()}`)
  t.match(empty, { code: 10, err: /empty' is empty, want files with sha256:/ })
})

await t.test('each kind of failure has its code, and its message two places', async (t) => {
  const { server, folder, run, uri, to, terminationLog } = await prepare(t)
  const wrong = `--digest=sha256:${'0'.repeat(64)}`
  const cases: readonly (readonly [number, readonly string[], RegExp])[] = [
    [2, ['--nonsense'], /unknown flag --nonsense/],
    [2, ['x'], /got 'x', want flags only/],
    [2, [to], /--uri: got none/],
    [2, [uri], /--to: got none/],
    [2, ['--uri=pvc://x/y', to], /--uri: "pvc:\/\/x\/y": want http/],
    [2, [uri, to, '--digest=x'], /--digest: "x", want sha256:/],
    [2, ['--verify=x'], /--digest: got none/],
    [2, [uri, to, '--cache-max-bytes=1'], /--cache: got none, want the folder/],
    [2, ['--verify=x', uri], /--verify: got --uri beside it/],
    [2, ['--verify=x', to], /--verify: got --to beside it/],
    [2, ['--verify=x', '--cache=y'], /--verify: got --cache beside it/],
    [2, ['--verify=x', '--cache-max-bytes=1'], /--verify: got --cache-max-bytes beside it/],
    [2, ['--verify=x', '--progress-port=1'], /--verify: got --progress-port beside it/],
    [
      2,
      ['--verify=x', `--digest=${wrong.slice(9)}`, '--secret-dir=y'],
      /--verify: got --secret-dir beside it/,
    ],
    [3, [uri, to, `--secret-dir=${folder}/termination-log`], /key username of the secret cannot/],
    [14, [uri, to, wrong], /m.tar' has sha256:[0-9a-f]{64}, want sha256:0{64}/],
    [16, [uri, to, '--max-bytes=10'], /has more than 10 bytes, which is the limit/],
    [16, [uri, to, '--max-files=1'], /more than 1 files, which is the limit/],
    [17, [uri, `--to=${terminationLog}/x`], /cannot be written/],
  ]
  for (const [code, argv, text] of cases) {
    const { err, ...ended } = await run(...argv)
    t.equal(ended.code, code, argv.join(' '))
    t.match(err, text)
    t.match(err, /^tutti-step fetch: [^\n]*\n$/)
    if (argv[0] === '--nonsense') continue
    t.equal(`${await readFile(terminationLog, 'utf8')}\n`, err)
  }
  for (const [status, code] of [
    [404, 10],
    [403, 11],
    [503, 12],
  ] as const) {
    server.script(answerStatus(status))
    t.equal((await run(uri, to)).code, code)
  }
  server.script(serveBytes(Buffer.from('no archive')))
  t.equal((await run(uri, to)).code, 15)
  t.equal((await run(uri.replace('http:', 'https:'), to)).code, 13)
})

await t.test('a signal ends it', async (t) => {
  const { server, run, uri, to, stop } = await prepare(t)
  server.script((_, response) => {
    response.writeHead(200)
    response.write('x', () => stop())
  })
  t.match(await run(uri, to), { code: 1, err: 'tutti-step fetch: stopped by SIGTERM\n' })
})

/** Without the padding that the formatter gives to tables. */
const compact = (text: string): string => text.replaceAll(' ', '').replaceAll(/-{2,}/g, '--')

await t.test('README.md lists every exit code', async (t) => {
  const readme = compact(await readFile(new URL('../../README.md', import.meta.url), 'utf8'))
  for (const [reason, code] of Object.entries(FETCH_EXIT_CODES)) {
    t.ok(readme.includes(`|${code}|\`${reason}\`|`), reason)
  }
})
