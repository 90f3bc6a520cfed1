/** The longest name of a resource: what is made of it gets suffixes. */
const LONGEST = 52

/**
 * Returns a function that makes resource names from served names. Each name is a DNS label that begins with a letter, and is
 * made only once.
 *
 * @param taken - names that are not to be used; every name that is made is added.
 */
export function resourceNames(taken = new Set<string>()): (servedName: string) => string {
  return (servedName) => {
    const base = toLabel(servedName)
    let name = base
    for (let i = 2; taken.has(name); i++) {
      const suffix = `-${i}`
      name = `${base.slice(0, LONGEST - suffix.length).replace(/-+$/, '')}${suffix}`
    }
    taken.add(name)
    return name
  }
}

function toLabel(servedName: string): string {
  const letters = servedName.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  const label = letters.replace(/^-+/, '').replace(/^(?=[0-9])/, 'm-')
  const short = label.slice(0, LONGEST).replace(/-+$/, '')
  return short === '' ? 'model' : short
}
