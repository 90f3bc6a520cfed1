import * as fc from 'fast-check'
import t from 'tap'
import type { ModelConfig } from './model-config.ts'
import { formatModelVersion, parseModelVersion, selectVersions } from './model-version.ts'

type VersionPolicy = ModelConfig['version_policy']

function withPolicy(policy: VersionPolicy) {
  return { name: 'm', ...(policy !== undefined && { version_policy: policy }) }
}

await t.test('a policy selects from the versions that are there', async (t) => {
  const there = [3, 1, 10, 2]
  const cases: readonly (readonly [VersionPolicy, readonly number[]])[] = [
    [undefined, [10]],
    [{ latest: { num_versions: 1 } }, [10]],
    [{ latest: { num_versions: 3 } }, [2, 3, 10]],
    [{ latest: { num_versions: 9 } }, [1, 2, 3, 10]],
    [{ all: {} }, [1, 2, 3, 10]],
    [{ specific: { versions: [2, 7, 1] } }, [1, 2]],
    [{}, [1, 2, 3, 10]],
  ]
  for (const [policy, want] of cases) {
    t.same(selectVersions(withPolicy(policy), there), want, JSON.stringify(policy))
  }
})

await t.test("a policy that selects nothing is refused with Triton's text", async (t) => {
  const cases: readonly (readonly [VersionPolicy, readonly number[]])[] = [
    [undefined, []],
    [{ all: {} }, []],
    [{ latest: { num_versions: 0 } }, [1]],
    [{ specific: { versions: [] } }, [1]],
    [{ specific: { versions: [2] } }, [1]],
  ]
  for (const [policy, there] of cases) {
    t.throws(() => selectVersions(withPolicy(policy), there), {
      reason: 'CONFIG_INVALID',
      code: 'INVALID_ARGUMENT',
      message: "at least one version must be available under the version policy of model 'm'",
    })
  }
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

await t.test('a version keeps its digits in texts', async (t) => {
  const cases = [
    ['9223372036854775807', '9223372036854775807'],
    [' +01x', '1'],
    ['x', 'x'],
  ] as const
  for (const [text, expected] of cases) t.equal(formatModelVersion(text), expected, text)
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
