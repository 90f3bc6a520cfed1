import DefaultTheme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import './style.css'
import VersionMenu from './version-menu.js'

export default {
  extends: DefaultTheme,
  Layout: () =>
    h(DefaultTheme.Layout, undefined, { 'nav-bar-content-after': () => h(VersionMenu) }),
}
