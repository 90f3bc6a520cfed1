import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLogger, systemClock } from '@tutti/chassis'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { EdgeFile } from './edge-file.ts'

const routesOf = (model: string): string =>
  JSON.stringify({ routes: [{ hosts: ['a.example'], models: [model] }] })

function logLines() {
  const lines: { message: string }[] = []
  const waiting = new Set<() => void>()
  const destination = {
    write: (line: string) => {
      lines.push(JSON.parse(line))
      for (const look of waiting) look()
    },
  }
  const until = (isThere: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isThere()) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
    })
  return { log: createLogger({ level: 'info', name: 'test', destination }), lines, until }
}

async function open(t: Test, text: string) {
  const path = join(t.testdir({ 'edge.json': text }), 'edge.json')
  const { log, lines, until } = logLines()
  const file = await EdgeFile.open({ path, clock: systemClock, log })
  t.teardown(() => file.close())
  return { path, file, lines, until }
}

await t.test('the file is read again when it changes', async (t) => {
  const { path, file, lines, until } = await open(t, routesOf('one'))
  t.match(file.access.routes, [{ models: ['one'] }])
  t.equal(file.access, file.access, 'the same object while nothing changes')
  await writeFile(path, routesOf('two'))
  await until(() => lines.some(({ message }) => message === 'edge routes changed'))
  t.match(file.access.routes, [{ models: ['two'] }])
})

await t.test('a file that does not parse later leaves what was there', async (t) => {
  const { path, file, lines, until } = await open(t, routesOf('one'))
  await writeFile(path, '{"routes": [{"hosts": ["a"], "models": ["m"], "mirror": true}]}')
  await until(() => lines.some(({ message }) => message.startsWith('edge routes cannot be read')))
  t.match(file.access.routes, [{ models: ['one'] }])
})

await t.test('a file that is not there or does not fit is refused at the start', async (t) => {
  const cases = ['', '[]', '{}', '{"routes":[{"hosts":[],"models":["m"]}]}', routesOf('')]
  for (const text of cases) {
    await t.rejects(open(t, text), { message: /^--edge-file: / }, text)
  }
  const path = join(t.testdir(), 'none.json')
  const { log } = logLines()
  await t.rejects(EdgeFile.open({ path, clock: systemClock, log }), {
    message: /--edge-file: .*none\.json/,
  })
})

await t.test(
  'whatever JSON is in the file, it is taken or refused with a typed error',
  async (t) => {
    const path = join(t.testdir({ 'edge.json': '' }), 'edge.json')
    const { log } = logLines()
    await fc.assert(
      fc.asyncProperty(fc.json(), async (text) => {
        await writeFile(path, text)
        const opened = EdgeFile.open({ path, clock: systemClock, log })
        await opened.then(
          (file) => file.close(),
          (error: { reason?: string }) => {
            if (error.reason !== 'SETTING_INVALID') throw error
          },
        )
      }),
      { numRuns: 50 },
    )
  },
)
