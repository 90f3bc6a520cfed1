import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ServeError } from '@tutti/errors'
import t, { type Test } from 'tap'
import { createManualClock, until } from '../testing/index.ts'
import { followFiles } from './follow-files.ts'

function follow(t: Test, files: Readonly<Record<string, string>>) {
  const folder = t.testdir(files)
  const paths = Object.keys(files).map((name) => join(folder, name))
  const clock = createManualClock()
  const taken: (readonly string[])[] = []
  const failed: string[] = []
  let looks = 0
  const stop = followFiles({
    paths,
    refuse: (path, cause) => new ServeError('FLAG_INVALID', path, { cause }),
    texts: Object.values(files),
    take: (texts) => {
      if (texts.includes('bad')) throw new ServeError('FLAG_INVALID', 'bad')
      taken.push(texts)
    },
    failed: ({ message }) => void failed.push(message),
    // A look is over when it sets the timer of the next one.
    clock: {
      ...clock,
      setTimer: (ms, callback) => {
        looks += 1
        return clock.setTimer(ms, callback)
      },
    },
  })
  t.teardown(stop)
  const look = async (): Promise<void> => {
    const before = looks
    clock.advance(1000)
    await until('the look is over', () => looks > before)
  }
  return { paths, taken, failed, look, stop }
}

await t.test('a file counts once two looks have seen it as it is', async (t) => {
  const { paths, taken, look } = follow(t, { a: 'one' })
  const [path = ''] = paths
  await look()
  for (const text of ['t', 'tw', 'two']) {
    await writeFile(path, text)
    await look()
    t.same(taken, [], text)
  }
  await look()
  await look()
  t.same(taken, [['two']])
})

await t.test(
  'a file that takes the place of another counts, as a mounted Secret does',
  async (t) => {
    const { paths, taken, look } = follow(t, { a: 'one', b: 'x' })
    const [path = ''] = paths
    await writeFile(`${path}.new`, 'two')
    await rename(`${path}.new`, path)
    await look()
    await look()
    t.same(taken, [['two', 'x']])
    t.equal(readFileSync(path, 'utf8'), 'two')
  },
)

await t.test('what is refused is said once, and tried again at each look', async (t) => {
  const { paths, taken, failed, look } = follow(t, { a: 'one', b: 'x' })
  const [path = '', other = ''] = paths
  await writeFile(path, 'bad')
  for (let i = 0; i < 4; i += 1) await look()
  t.same([taken, failed], [[], ['bad']])
  await writeFile(path, 'one')
  await writeFile(other, 'y')
  await look()
  await look()
  t.same(taken, [['one', 'y']])
})
