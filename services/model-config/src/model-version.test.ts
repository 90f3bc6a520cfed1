import * as fc from 'fast-check'
import t from 'tap'
import { parseModelVersion, selectVersions } from './model-version.ts'

await t.test('a policy selects from the versions that are there', async (t) => {
  const there = [3, 1, 10, 2]
  t.same(selectVersions(undefined, there), [10])
  t.same(selectVersions({ latest: { num_versions: 1 } }, there), [10])
  t.same(selectVersions({ latest: { num_versions: 3 } }, there), [2, 3, 10])
  t.same(selectVersions({ latest: { num_versions: 9 } }, there), [1, 2, 3, 10])
  t.same(selectVersions({ latest: { num_versions: 0 } }, there), [10])
  t.same(selectVersions({ all: {} }, there), [1, 2, 3, 10])
  t.same(selectVersions({ specific: { versions: [2, 7, 1] } }, there), [1, 2])
  t.same(selectVersions({ specific: { versions: [] } }, there), [])
  t.same(selectVersions({}, there), [10])
  t.same(selectVersions({ all: {} }, []), [])
  t.same(selectVersions(undefined, []), [])
})

await t.test('no text is the latest version', async (t) => {
  t.equal(parseModelVersion(''), undefined)
})

await t.test('versions are read by their leading number', async (t) => {
  const cases: [string, number][] = [
    ['1', 1],
    ['1x', 1],
    ['1.5', 1],
    [' 1', 1],
    ['\t+2', 2],
    ['01', 1],
    ['0', 0],
    ['-0', 0],
    ['20260101120000', 20260101120000],
  ]
  for (const [text, expected] of cases) t.equal(parseModelVersion(text), expected, text)
})

await t.test('text without a number and negative numbers are INVALID_VERSION', async (t) => {
  for (const text of ['x', 'latest', ' ', '-', '+', '.5', '9223372036854775808', '- 1']) {
    t.throws(() => parseModelVersion(text), {
      reason: 'INVALID_VERSION',
      code: 'INVALID_ARGUMENT',
      message: `failed to get model version from specified version string '${text}' (details: stol), version should be an integral value > 0`,
    })
  }
  for (const text of ['-1', ' -7x']) {
    t.throws(() => parseModelVersion(text), {
      reason: 'INVALID_VERSION',
      message: `invalid model version specified '${text}' , version should be an integral value > 0`,
    })
  }
})

await t.test('any text is a version, the latest or INVALID_VERSION', async (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.bigInt().map(String)), (text) => {
      try {
        const version = parseModelVersion(text)
        return version === undefined ? text === '' : version >= 0
      } catch (error) {
        return Object(error).reason === 'INVALID_VERSION'
      }
    }),
    { numRuns: 500 },
  )
  t.pass('held for every text tried')
})
