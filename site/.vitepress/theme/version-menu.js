import { useData, withBase } from 'vitepress'
import { defineComponent, h, onMounted, ref } from 'vue'

const open = ({ target }) => location.assign(withBase(`/../${target.value}/`))

/** The version of these pages, and the others that versions.json beside them lists. */
export default defineComponent(() => {
  const { theme } = useData()
  const current = theme.value.version
  const versions = ref([current])
  onMounted(async () => {
    const answer = await fetch(withBase('/../versions.json')).catch(() => undefined)
    if (answer?.ok) versions.value = await answer.json()
  })
  return () =>
    h(
      'select',
      { 'aria-label': 'Version', class: 'version-menu', value: current, onChange: open },
      versions.value.map((version) => h('option', { value: version }, version)),
    )
})
