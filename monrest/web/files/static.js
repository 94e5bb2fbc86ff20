// A page without data: it has themes only.
import { offerThemes } from "./theme.js";

offerThemes();
