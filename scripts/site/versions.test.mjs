import * as fc from 'fast-check'
import t from 'tap'
import { addVersion, forwardingPages, newestOf } from './versions.mjs'

await t.test('versions are listed once, the newest first', async (test) => {
  const versions = ['0.1.0', '1.0.0-rc.2', '1.0.0-rc.10', '1.0.0', '0.10.0', '0.9.3']
  const sorted = ['1.0.0', '1.0.0-rc.10', '1.0.0-rc.2', '0.10.0', '0.9.3', '0.1.0']
  test.same(versions.reduce(addVersion, []), sorted)
  test.same(addVersion(sorted, '0.9.3'), sorted)
  test.throws(() => addVersion([], 'latest'), { message: /got latest, want a version/ })
})

await t.test('the order in which versions are added does not matter', async (test) => {
  const number = fc.nat(12)
  const version = fc.tuple(number, number, number).map((numbers) => numbers.join('.'))
  fc.assert(
    fc.property(fc.uniqueArray(version, { maxLength: 6 }), (versions) => {
      const forth = versions.reduce(addVersion, [])
      test.same(versions.toReversed().reduce(addVersion, []), forth)
      test.same(new Set(forth), new Set(versions))
    }),
  )
})

await t.test('readers get the newest release', async (test) => {
  test.equal(newestOf(['2.0.0-rc.1', '1.2.0', '1.1.0']), '1.2.0')
  test.equal(newestOf(['0.1.0-rc.2', '0.1.0-rc.1']), '0.1.0-rc.2')
})

await t.test('the address of errors forwards to the newest version', async (test) => {
  test.match(forwardingPages('1.2.3').get('errors/index.html'), /"\.\.\/1\.2\.3\/errors\.html"/)
})
